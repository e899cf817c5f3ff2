"""Learn publishable models from private labels with any black-box learner.

The way of the data is the way of the folders. Private records are cut into shards
(`core.partition`); one teacher per shard (`teachers.ensemble`) votes on public points
(`teachers.votes`); a mechanism (`core.mechanisms`) answers, and `releasing` certifies it; a student
(`students`) learns from what comes out (`released`).

Packages are used by their own names, without an import of their own:

- `sb.learners`: estimators; `sb.students.fit_student`: another student from the same labels;
- `sb.planning.plan_text`: the text of a `plan`; `sb.theory.sample_complexity`: how many records the
  theorems ask for;
- `sb.write_release`, `sb.load_student`: a release on disk, and its student read back;
- `sb.accounting`, `sb.core`, `sb.teachers`, `sb.queries`, `sb.hypotheses`,
  `sb.data`, `sb.audit`, `sb.report`, `sb.runs`: the parts that the estimators are made of.

Names load on first use, so that importing the package costs nothing.
"""

import lazy_loader

# The names are in the stub beside this file, once for type checkers and for the program.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
