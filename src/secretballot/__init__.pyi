from . import (
    accounting as accounting,
)
from . import (
    audit as audit,
)
from . import (
    bases as bases,
)
from . import (
    core as core,
)
from . import (
    data as data,
)
from . import (
    exceptions as exceptions,
)
from . import (
    hypotheses as hypotheses,
)
from . import (
    learners as learners,
)
from . import (
    planning as planning,
)
from . import (
    publishing as publishing,
)
from . import (
    queries as queries,
)
from . import (
    released as released,
)
from . import (
    releasing as releasing,
)
from . import (
    report as report,
)
from . import (
    runs as runs,
)
from . import (
    service as service,
)
from . import (
    students as students,
)
from . import (
    teachers as teachers,
)
from . import (
    theory as theory,
)
from .accounting import (
    PrivacyBudget as PrivacyBudget,
)
from .core.ledger import (
    Ledger as Ledger,
)
from .core.private import (
    Votes as Votes,
)
from .core.releasing import (
    Released as Released,
)
from .data.reading import (
    read_votes as read_votes,
)
from .data.tally import (
    votes_of_counts as votes_of_counts,
)
from .data.tally import (
    votes_of_teachers as votes_of_teachers,
)
from .data.tally import (
    write_votes as write_votes,
)
from .exceptions import (
    BudgetError as BudgetError,
)
from .exceptions import (
    CertificateError as CertificateError,
)
from .exceptions import (
    DataError as DataError,
)
from .exceptions import (
    LedgerError as LedgerError,
)
from .exceptions import (
    ParameterError as ParameterError,
)
from .exceptions import (
    ResourceError as ResourceError,
)
from .exceptions import (
    SamplerError as SamplerError,
)
from .exceptions import (
    SecretBallotError as SecretBallotError,
)
from .exceptions import (
    ServiceError as ServiceError,
)
from .learners.labeler_algorithms import (
    relabel as relabel,
)
from .learners.labelers import (
    Labeler as Labeler,
)
from .learners.moments.estimators import (
    RecordMomentsClassifier as RecordMomentsClassifier,
)
from .learners.moments.estimators import (
    RecordMomentsRegressor as RecordMomentsRegressor,
)
from .learners.pate import (
    PATEClassifier as PATEClassifier,
)
from .learners.pate import (
    PATERegressor as PATERegressor,
)
from .learners.pate import (
    ask_actively as ask_actively,
)
from .learners.record_votes import (
    RecordVotesClassifier as RecordVotesClassifier,
)
from .learners.selection import (
    SemiPrivateClassifier as SemiPrivateClassifier,
)
from .learners.selection import (
    choose_candidate as choose_candidate,
)
from .learners.training.session import (
    LabelingSession as LabelingSession,
)
from .learners.training.table import (
    hold_out as hold_out,
)
from .learners.training.trained import (
    TrainedTeachers as TrainedTeachers,
)
from .learners.training.trained import (
    train_teachers as train_teachers,
)
from .planning.plan_model import (
    Plan as Plan,
)
from .publishing.release import (
    write_release as write_release,
)
from .publishing.signing import (
    new_signing_key as new_signing_key,
)
from .publishing.signing import (
    sign_release as sign_release,
)
from .released import (
    ReleasedLabels as ReleasedLabels,
)
from .releasing import (
    estimate_stability as estimate_stability,
)
from .releasing import (
    release as release,
)
from .report.certificate.verify import (
    verify_certificate as verify_certificate,
)
from .report.student.load import (
    load_student as load_student,
)
from .runs.plan import (
    plan as plan,
)
from .runs.run import (
    Outcome as Outcome,
)
from .runs.run import (
    run as run,
)
from .runs.spec import (
    RunSpec as RunSpec,
)
from .runs.tables import (
    store_table as store_table,
)
from .service.remote import (
    RemoteSession as RemoteSession,
)
from .service.remote import (
    connect as connect,
)
from .students import (
    GraphCountsClassifier as GraphCountsClassifier,
)
from .students import (
    HypothesisStudent as HypothesisStudent,
)
from .students import (
    MomentsStudent as MomentsStudent,
)
from .students import (
    NoisyCountsClassifier as NoisyCountsClassifier,
)
from .students import (
    RecordVotesStudent as RecordVotesStudent,
)
from .students import (
    VotingStudent as VotingStudent,
)
from .students import (
    fit_student as fit_student,
)
from .teachers.torch_classifier import (
    TorchClassifier as TorchClassifier,
)

__version__: str
