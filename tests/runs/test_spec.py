"""Settings of a run: three readers of one model, what a plan binds, and what a run is known by."""

from pathlib import Path

import pytest

from secretballot.cli.screens import settings_of
from secretballot.cli.verbs import _LEARNING
from secretballot.exceptions import ParameterError, SecretBallotError
from secretballot.runs.methods import Sizes, method_of
from secretballot.runs.spec import RunSpec, Sources, groups, words_of

PRICE = {"epsilon": 1, "delta": 1e-6}
PASSWORD = "s3cr3t"
DATABASE = f"postgresql://curator:{PASSWORD}@host/accounts"
PLAN = """
[budget]
epsilon = 1.0
delta = 1e-05
[data]
n_records = 600
classes = ["no", "yes"]
[method]
name = "pate"
n_teachers = 20
[forecast]
n_public = 50
"""


def file(folder, text, name="settings.toml"):
    (folder / name).write_text(text)
    return folder / name


def refusal(*files, **fields):
    with pytest.raises(SecretBallotError) as refused:
        RunSpec.read(*files, **fields)
    text = str(refused.value)
    assert "\n" not in text
    assert text.endswith((".", "?"))
    return text


def of_options(**given):
    """Return what the options of `learn` make of these words."""
    found = []
    words = {"config": None, "set_": None, **given}
    settings_of(*_LEARNING)(lambda sources: found.append(sources))(**words)
    return RunSpec.of_tree(found[0].tree())


def test_three_readers_give_the_same_settings(tmp_path):
    text = """
        [data]
        private = "p.csv"
        public = "https://host/q.csv"
        target = ["ill"]
        classes = ["a, b", "c"]
        n_records = 5000
        [budget]
        epsilon = 1
        delta = 1e-6
        total = [4, 1e-5]
        [method]
        name = "pate"
        n_teachers = 20
        mechanism = "sparse-vector:max_abstentions=3"
        n_queries = "estimate:epsilon=0.1"
        [output]
        publish_metrics = true
        [execution]
        confirm = ["epsilon", "records"]
        [about]
        title = "Stays in the wards"
    """
    by_file = RunSpec.read(file(tmp_path, text))
    by_keywords = RunSpec.read(
        private=Path("p.csv"),
        public="https://host/q.csv",
        target="ill",
        **{"classes": ("a, b", "c"), "n_records": 5000, **PRICE, "total": (4, 1e-5)},
        method="pate",
        n_teachers=20,
        mechanism="sparse-vector:max_abstentions=3",
        n_queries="estimate:epsilon=0.1",
        publish_metrics=True,
        confirm=("epsilon", "records"),
        title="Stays in the wards",
    )
    by_options = of_options(
        private="p.csv",
        public="https://host/q.csv",
        target="ill",
        classes='"a, b",c',
        epsilon="1",
        delta="1e-6",
        total="4,1e-5",
        method="pate",
        n_teachers="20",
        confirm="epsilon,records",
        set_=[
            "n_records=5000",
            "method.mechanism=sparse-vector:max_abstentions=3",
            "n_queries=estimate:epsilon=0.1",
            "publish_metrics=true",
            "title=Stays in the wards",
        ],
    )
    assert by_file == by_keywords == by_options
    assert RunSpec.read(file(tmp_path, by_file.to_toml(), "again.toml")) == by_file
    assert RunSpec.read(file(tmp_path, text), n_teachers=30).method.n_teachers == 30


def test_a_method_may_be_named_with_its_settings():
    spec = RunSpec.read(**PRICE, method="pate:n_teachers=20,n_queries=9")
    assert spec == RunSpec.read(**PRICE, method="pate", n_teachers=20, n_queries=9)
    assert refusal(**PRICE, method="pate:n_teachers").endswith("each key once.")


def test_lists_of_words_may_quote_commas():
    assert words_of('a, "b,c" ,d') == ("a", "b,c", "d")
    for text, classes in (
        ("0,1", (0, 1)),
        ("-1,1", (-1, 1)),
        ("0,one", ("0", "one")),
        ("01,1", ("01", "1")),
        ("<=50K,>50K", ("<=50K", ">50K")),
        (["0", "1"], ("0", "1")),
    ):
        assert RunSpec.read(**PRICE, classes=text).data.classes == classes
    for text in ("a\nb,c", "a,b\udcff", "a\r,b"):
        assert refusal(**PRICE, drop=text).isprintable()


def test_unknown_settings_are_refused_with_the_nearest_name(tmp_path):
    assert refusal(epsilom=1) == "There is no setting 'epsilom'; did you mean budget.epsilon?"
    assert refusal(hue=1).endswith("setting 'hue'; secretballot learn --help-all lists them.")
    misplaced = file(tmp_path, "[budget]\nn_teachers = 3\n")
    assert refusal(misplaced) == (
        f"There is no setting 'budget.n_teachers' in {str(misplaced)!r}; did you mean"
        " method.n_teachers?"
    )
    assert "'privacy', and its tables are data, budget" in refusal(file(tmp_path, "[privacy]\n"))
    assert "'forecast', and its tables are" in refusal(file(tmp_path, "forecast = 1\n"))
    for text in ("[budget", "\xff\xfe"):
        assert "cannot be read as TOML" in refusal(file(tmp_path, text))
    assert "cannot be read as TOML" in refusal(tmp_path / "none.toml")
    for pairs, words in (
        (["epsilon"], "--set 'epsilon' has no value; write KEY=VALUE."),
        (["method.epsilon=1"], r"no setting 'method.epsilon'; did you mean budget.epsilon\?"),
    ):
        with pytest.raises(ParameterError, match=words):
            of_options(set_=pairs)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"epsilon": None}, "epsilon is missing; give the price"),
        ({"epsilon": True}, "epsilon is True; it must be a number"),
        ({"epsilon": "1,5"}, r"epsilon is '1,5'; it must be a valid number\.$"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"delta": 1}, "delta is 1"),
        ({"total": "4"}, "total is .*; give two numbers by a comma, such as 4,1e-5"),
        ({"bounds": "low,high"}, "bounds is 'low'; it must be a valid number"),
        ({"n_teachers": 2.5}, "n_teachers is 2.5; it must be a valid integer"),
        ({"target": "a,b", "unit": "b"}, "unit is 'b', which is a target; name the column of ids"),
        ({"bounds": "0,1", "classes": "a,b"}, "bounds is given, so the target is a number"),
        ({"relation": "add"}, "relation is 'add'; it must be 'add-remove' or 'replace-one'"),
        ({"private": 5}, "private is 5; it must be a path, or a URL"),
        ({"ledger": 5}, "ledger is 5; it must be a path, a database's URL, or own"),
        ({"confirm": "speed"}, "confirm is 'speed'; it must be 'epsilon'"),
        ({"title": "two\nlines"}, "title is .*; give text on one line"),
        ({"method": "votes"}, "method is 'votes'; it must be one of record-moments, pate"),
        ({"hypotheses": "stumps"}, "delta is 1e-06, and method semi-private needs none"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_rule(fields, words):
    with pytest.raises(ParameterError, match=f"^{words}"):
        RunSpec.read(**PRICE | fields)


@pytest.mark.parametrize(
    ("fields", "begun", "method"),
    [
        ({"method": "pate"}, "record-votes", "pate"),
        ({"student": "tree"}, "record-votes", "record-votes"),
        ({"n_teachers": 3}, None, "pate"),
        ({"n_queries": 9, "votes_per_record": 2}, None, "record-votes"),
        ({"hypotheses": "stumps"}, None, "semi-private"),
        ({"bounds": "0,1"}, None, "record-moments"),
        ({"student": "tree"}, "votes", "record-moments"),
    ],
)
def test_the_method_is_settled_before_anything_else(fields, begun, method):
    assert Sources(fields=fields).tree(begun)["method"]["name"] == method


def test_a_setting_of_another_method_is_refused():
    for fields, words in (
        ({"method": "record-moments", "n_teachers": 3}, "n_teachers belongs to pate, and the"),
        ({"n_teachers": 3, "votes_per_record": 2}, "votes_per_record belongs to record-votes"),
        ({"method": "pate", "class_weight": "none"}, "class_weight belongs to record-moments"),
    ):
        assert refusal(**PRICE, **fields).startswith(words)


@pytest.mark.parametrize(
    ("name", "same", "other"),
    [
        ("epsilon", "1", 2),
        ("delta", "1e-05", 1e-6),
        ("classes", "no,yes", "yes,no"),
        ("n_records", "600", 601),
        ("n_teachers", "20", 21),
        ("method", "pate", "record-votes"),
    ],
)
def test_a_plan_binds_whichever_source_contradicts_it(tmp_path, name, same, other):
    plan = file(tmp_path, PLAN, "plan.toml")
    planned = RunSpec.read(plan)
    assert RunSpec.read(plan, **{name: same}) == planned
    words = refusal(plan, **{name: other})
    assert words.startswith(f"{name} is {str(other)!r} and the plan has ")
    assert words.endswith("leave one of the two out.")
    key = "name" if name == "method" else name
    more = file(tmp_path, f"[{groups()[name]}]\n{key} = {other!r}\n")
    assert refusal(plan, more) == words
    assert planned.forecast is not None
    assert RunSpec.read(plan, student="tree").method.student == "tree"  # it leaves that open


@pytest.mark.parametrize("name", ["teacher", "student"])
def test_a_plan_alone_has_no_code_imported(tmp_path, name):
    """Plans pass from hand to hand."""
    code = "antigravity:fly"
    plan = file(tmp_path, PLAN.replace("n_teachers", f'{name} = "{code}"\nn_teachers'))
    words = f"{name} is {code!r} by the plan, and a plan alone must not have code imported"
    assert refusal(plan).startswith(words)
    beside = file(tmp_path, f'[method]\n{name} = "{code}"\n', "beside.toml")
    assert refusal(plan, beside).startswith(words)  # another file is no word of the curator's own
    assert getattr(RunSpec.read(plan, **{name: code}).method, name) == code


def test_a_run_is_known_by_what_shapes_its_release_alone(tmp_path):
    def known(**more):
        return RunSpec.read(**PRICE, method="pate", target="ill", **more).identity()

    same = {
        "private": "p.csv",
        "public": "q.csv",
        "evaluate": "t.csv",
        "out": tmp_path,
        "ledger": DATABASE,
        "total": (4, 1e-5),
        "confirm": "epsilon",
        "n_jobs": 2,
        "executor": "ray",
        "send_shards": True,
        "accept_unseen": "age",
        "exclude": "report",
        "publish_metrics": True,
        "schema": "s.json",
    }
    other = {
        "unit": "person",
        "drop": "age",
        "classes": "no,yes",
        "n_records": 5000,
        "relation": "replace-one",
        "dataset": "d",
        "n_teachers": 20,
        "teacher": "tree",
        "student": "tree",
        "mechanism": "labels",
        "n_queries": 9,
        "strategy": "margin",
        "random_state": 1,
        "purpose": "to plan beds",
    }
    assert all(known(**{name: value}) == known() for name, value in same.items())
    assert all(known(**{name: value})[name] for name, value in other.items())


def test_no_password_leaves_the_settings():
    spec = RunSpec.read(
        **PRICE, ledger=DATABASE, private=f"s3://key:{PASSWORD}@bucket/p.csv?sign={PASSWORD}"
    )
    shown = (spec.to_toml(), str(spec.identity()), repr(spec.budget), spec.dataset_name)
    assert PASSWORD not in "".join(shown)
    assert 'ledger = "postgresql://curator@host/accounts' in spec.to_toml()


@pytest.mark.parametrize("name", ["ledger", "out", "schema"])
def test_a_url_where_a_path_belongs_is_not_quoted(name):
    text = refusal(**PRICE, **{name: f"https://key:{PASSWORD}@host/x"})
    assert "URL" in text
    assert PASSWORD not in text


def test_no_password_is_in_a_message(tmp_path):
    plan = file(tmp_path, f'[budget]\nledger = "{DATABASE}"\n[forecast]\nn_public = 1\n')
    text = refusal(plan, **PRICE, ledger=DATABASE.replace("host", "other"))
    text += refusal(**PRICE, ledger=f"{DATABASE}#")
    with pytest.raises(ParameterError) as refused:
        of_options(set_=[f"ledger={DATABASE}", f"ledger={DATABASE}"])
    assert PASSWORD not in text + str(refused.value)


@pytest.mark.parametrize(("relation", "scale"), [("add-remove", 0.5), ("replace-one", 1.0)])
def test_a_choice_is_quoted_at_the_noise_of_its_relation(relation, scale):
    spec = RunSpec.read(private="p", hypotheses="stumps", epsilon=2, relation=relation)
    assert method_of(spec).quote(Sizes(10)).sigma == scale
