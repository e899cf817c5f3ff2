"""`secretballot check`: the tables of a run side by side, for the curator alone."""

from secretballot.cli.outcome import BAD_INPUT, DONE, Answer, as_options
from secretballot.cli.settings import settings_of
from secretballot.cli.texts import show
from secretballot.exceptions import DataError
from secretballot.runs.spec import DataSpec, OutputSpec, RunSpec, Sources, groups


@settings_of(
    DataSpec,
    OutputSpec.only("evaluate"),
    arguments=("private", "public"),
    required=("target",),
)
def check(sources: Sources) -> Answer:
    """Compare a private with a public table, for the curator's eyes.

    Nothing is trained, written or spent.

    Example: secretballot check patients.csv public.csv --target ill --classes no,yes
    """
    from secretballot.cli.console import watching
    from secretballot.runs.check import TableCheck
    from secretballot.runs.table_match import percent

    fields = {
        name: one
        for name, one in sources.given.items()
        if groups()[name] == "data" or name == "evaluate"
    }
    fields |= {"epsilon": 1, "delta": 1e-6}  # which are not looked at
    spec = RunSpec.of_tree(Sources(fields=fields).tree())
    with watching() as watch:
        found = TableCheck(spec, watch)

    def show_it() -> None:
        show("check", found, [as_options(error) for error in found.stopping], percent)
        if found.problem is not None:
            raise DataError(found.problem)

    # all of it is for the curator alone, and so are all notes
    document = {"notes": [note.text for note in watch.notes], **found.to_private_json(as_options)}
    return Answer(document, show_it, BAD_INPUT if found.stopping else DONE)
