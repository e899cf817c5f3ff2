"""What a release shows to the world: certificate, verification, folder, page, saved student.

Names load on first use: a student brings scikit-learn, which who reads certificates does without.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
