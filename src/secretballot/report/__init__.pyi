from .student_load import load_student as load_student
from .verification import Check as Check
from .verification import Verification as Verification
from .verification import verify_certificate as verify_certificate
