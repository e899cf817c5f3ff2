"""A PyTorch module as a scikit-learn classifier, for one shard or for many at once."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from secretballot._seeded import own_global_states, public_seed, seed_of
from secretballot._typing import AnyArray, Json
from secretballot._validation import check_count, named, refusal, shown
from secretballot.exceptions import ParameterError
from secretballot.foreign_code import result_of

_Tensors = dict[str, Any]

# Draw as many numbers as their result has, whatever the values: nobody's data decide where the
# draws of the next slot begin.
_STEADY_DRAWS = frozenset(
    [
        *("bernoulli", "bernoulli_", "native_dropout", "normal", "normal_", "random_", "uniform_"),
        *("rand", "rand_like", "randint", "randint_like", "randn", "randn_like"),
    ]
)
_POISONS = (float("nan"), 1e38, float("-inf"))


def _import_torch() -> Any:
    """Return torch.

    Raises
    ------
    ParameterError
        If it is not installed.
    """
    try:
        import torch
    except ImportError:
        raise ParameterError("PyTorch is not installed; install secretballot[torch].") from None
    return torch


@dataclass(frozen=True)
class _Recipe:
    """How a module is made and trained; public.

    Attributes
    ----------
    make : callable
        Returns a new module.
    n_steps : int
    batch_size : int
        Rows in a step of one slot.
    optimizer : {"adam", "sgd"}
    settings : tuple of (str, number)
        Of the optimizer.
    device : str
    """

    make: Callable[[], Any]
    n_steps: int
    batch_size: int
    optimizer: str
    settings: tuple[tuple[str, Any], ...]
    device: str


@dataclass(eq=False, repr=False)
class _Stack:
    """Copies of one module on a device, with parameters stacked along a first axis: one slot for
    each shard.

    What a slot becomes must be a function of its own rows, its own seed and public numbers, to the
    last bit: otherwise one record could change another teacher's vote. So every computation has a
    shape that public numbers fix, whatever the shards hold; an empty slot computes on zeros; and
    `_keeps_apart` tries the very module in the very shapes before any private row is touched.

    Parameters
    ----------
    recipe : Recipe
    trained, carried : dict of str to tensor of shape (n_slots, ...)
        Parameters that steps change, and frozen parameters and buffers.
    module : Module
        Whose shape all slots have; its own parameters serve nothing.

    A stack of one slot is computed as it is, without vectorisation.
    """

    recipe: _Recipe
    trained: _Tensors
    carried: _Tensors
    module: Any

    @classmethod
    def fresh(cls, recipe: _Recipe, seeds: Sequence[int]) -> "_Stack":
        """Return a stack of modules whose first parameters follow from one seed each.

        Raises
        ------
        ValueError
            If what is made is no module, or differs in shape from one time to the next.
        """
        torch = _import_torch()
        modules = []
        for seed in seeds:
            # one seed for each: parameters of one do not depend on how many come before
            torch.manual_seed(seed)
            module = recipe.make()
            if not isinstance(module, torch.nn.Module):
                raise ValueError(f"module made a {type(module).__name__} and no torch.nn.Module")
            modules.append(module)
        parameters, buffers = torch.func.stack_module_state(modules)
        still = {name for name, value in parameters.items() if not value.requires_grad}
        trained, carried = Json(), Json()
        for name, value in {**parameters, **buffers}.items():
            kept = carried if name in still | buffers.keys() else trained
            kept[name] = value.detach().to(recipe.device)
        return cls(recipe, trained, carried, modules[0].to(recipe.device))

    @cached_property
    def _optimizer(self) -> Any:
        """What changes every number by its own slope."""
        optim = _import_torch().optim
        kind = {"adam": optim.Adam, "sgd": optim.SGD}[self.recipe.optimizer]
        return kind([*self.trained.values()], foreach=False, **dict(self.recipe.settings))

    def __len__(self) -> int:
        return len(next(iter({**self.trained, **self.carried}.values())))

    def states(self) -> list[Json | None]:
        """Return each slot's parameters and buffers as arrays, None where one is not finite."""
        arrays = {
            name: value.cpu().numpy() for name, value in {**self.trained, **self.carried}.items()
        }
        states: list[Json | None] = []
        for slot in range(len(self)):
            state = {name: np.array(value[slot]) for name, value in arrays.items()}
            finite = all(bool(np.isfinite(value).all()) for value in state.values())
            states.append(state if finite else None)
        return states

    def step(self, X: Any, y: Any) -> None:
        """Take one step of every slot down its own loss.

        `X` has shape (n_slots, batch_size, n_features) and `y` shape (n_slots, batch_size).
        """
        torch = _import_torch()
        self.module.train()
        slopes = torch.func.grad(self._batch_loss, has_aux=True)
        if len(self) > 1:
            found, carried = torch.func.vmap(slopes, randomness="different")(
                self.trained, self.carried, X, y
            )
        else:
            own = _first_slot(self.trained), _first_slot(self.carried), X[0], y[0]
            found, carried = (
                {name: value[None] for name, value in one.items()} for one in slopes(*own)
            )
        # modules may have a mode that no gradient reaches
        self.carried = {name: value.detach() for name, value in carried.items()}
        for name, value in self.trained.items():
            value.grad = found[name].detach()
        self._optimizer.step()

    def _batch_loss(
        self, trained: _Tensors, carried: _Tensors, X: Any, y: Any
    ) -> tuple[Any, _Tensors]:
        torch = _import_torch()
        # a module may write into what it carries, as batch normalisation does
        after = {name: value.clone() for name, value in carried.items()}
        logits = torch.func.functional_call(self.module, {**trained, **after}, (X,))
        return torch.nn.functional.cross_entropy(logits, y), after


@contextmanager
def _one_way_to_compute() -> Iterator[None]:
    """Compute in one thread, in single precision, by algorithms that repeat themselves.

    Enter it inside `own_global_states`, which puts all of it back.
    """
    torch = _import_torch()
    # without it cuBLAS may sum in another order from one call to the next
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    with torch.enable_grad():
        yield


@lru_cache(maxsize=64)
def _slot_bytes(recipe: _Recipe, n_features: int) -> int | None:
    """Return about how many bytes one slot takes in a step, None where slots cannot share one.

    They cannot where the module cannot be vectorised, or draws random numbers in a way that may
    depend on its rows. Found out on made-up rows.
    """
    torch = _import_torch()

    def measured() -> int | None:
        stack = _Stack.fresh(recipe, [0, 1])
        watch = _operation_watch(torch)
        with watch:
            stack.step(*_made_up(recipe, 2, n_features))
        if not watch.draws <= _STEADY_DRAWS:
            return None
        kept = sum(value.nbytes for value in (*stack.trained.values(), *stack.carried.values()))
        return int(watch.bytes + 4 * kept) // 2

    with own_global_states(0), _one_way_to_compute():
        return result_of(measured)


@lru_cache(maxsize=64)
def _keeps_apart(recipe: _Recipe, n_features: int, n_slots: int) -> bool:
    """Return whether poison in some slots leaves all others as they were, bit for bit.

    Tried on made-up rows with the module, the device and the shapes that the shards will have: once
    as it is, once with every even slot poisoned, once with every odd one.

    Parameters
    ----------
    recipe : Recipe
    n_features, n_slots : int
        The shape of what will be computed.
    """
    torch = _import_torch()
    if _slot_bytes(recipe, n_features) is None:
        return False

    def computed(poisoned: int | None) -> list[Any]:
        stack = _Stack.fresh(recipe, range(n_slots))
        X, y = _made_up(recipe, n_slots, n_features)
        if poisoned is not None:
            for slot in range(poisoned, n_slots, 2):
                X[slot], y[slot] = _POISONS[slot // 2 % len(_POISONS)], 0
        torch.manual_seed(seed_of(n_slots, recipe.batch_size))
        # a poisoned slot has poisoned parameters from the second step on
        for _ in range(2):
            stack.step(X, y)
        return [*stack.trained.values(), *stack.carried.values()]

    def all_same() -> bool:
        clean = computed(None)
        return all(
            _same_bits(before[1 - first :: 2], after[1 - first :: 2])
            for first in (0, 1)
            for before, after in zip(clean, computed(first), strict=True)
        )

    with own_global_states(0), _one_way_to_compute():
        return bool(result_of(all_same))


def _same_bits(one: Any, other: Any) -> bool:
    mine, its = (value.contiguous().cpu().numpy().tobytes() for value in (one, other))
    return bool(mine == its)


def _made_up(recipe: _Recipe, n_slots: int, n_features: int) -> tuple[Any, Any]:
    """Return a batch of rows and labels for every slot; every module has these labels."""
    torch = _import_torch()
    shape = n_slots, recipe.batch_size
    y = torch.arange(n_slots * recipe.batch_size).reshape(shape) % 2
    return torch.rand((*shape, n_features)).to(recipe.device), y.to(recipe.device)


def _operation_watch(torch: Any) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        """Adds up what operations make, and remembers those that draw random numbers."""

        def __init__(self) -> None:
            super().__init__()
            self.bytes, self.draws = 0, set[str]()

        def __torch_dispatch__(
            self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = operation(*args, **(kwargs or {}))
            if torch.Tag.nondeterministic_seeded in operation.tags:
                self.draws.add(operation.overloadpacket.__name__)
            many = made if isinstance(made, (tuple, list)) else (made,)
            self.bytes += sum(one.nbytes for one in many if isinstance(one, torch.Tensor))
            return made

    return Watch()


def _first_slot(tensors: _Tensors) -> _Tensors:
    return {name: value[0] for name, value in tensors.items()}


_MEMORY = 2**30  # bytes that the slots of one stack may take together
_MOST_SLOTS = {"cpu": 50, "cuda": 1000}  # a processor gains nothing by more: its caches are full
_ROWS_AT_ONCE = 256  # that are predicted in one go
_STEP = "torch"
#: Rows of one shard, the numbers of their classes, and the classes.
_Part = tuple[Any, Any, AnyArray]
# without settings that would join slots, or change how torch computes
_OPTIMIZERS = {"adam": ("lr", "weight_decay"), "sgd": ("lr", "momentum", "weight_decay")}


@dataclass(eq=False, repr=False)
class TorchClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A PyTorch module trained on the rows of one shard; as a teacher, on many shards at once.

    Every shard takes the same number of steps, each on `batch_size` rows drawn from its own rows
    without replacement until all were seen, then anew. Teachers that share a step share nothing
    else: see the guide on teachers of PyTorch for what is promised, and where.

    Parameters
    ----------
    module : callable
        Returns a new ``torch.nn.Module`` with random parameters: a class or a function, of no
        arguments, that can be imported by its name where teachers are to be kept. The module takes
        rows as floats of shape (n, n_features) and returns a score for each class, shape (n,
        n_classes).
    n_steps : int
        Steps of training.
    batch_size : int
        Rows in a step.
    optimizer : str
        "adam" or "sgd", with settings under torch's names: "adam:lr=0.003,weight_decay=0.01",
        "sgd:lr=0.1,momentum=0.9".
    device : str
        "auto" for the first CUDA device where there is one, else the processor; or "cpu", "cuda",
        "cuda:1". In one stack are as many shards as fit into a gigabyte, at most 50 on a processor
        and 1,000 on a device.
    random_state : int, optional
        First parameters, drawn rows and dropout follow from it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels seen.
    n_features_in_ : int
    state_ : dict of str to ndarray
        Parameters and buffers of the module.

    Examples
    --------
    >>> def small_module():
    ...     import torch
    ...     return torch.nn.Sequential(
    ...         torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
    ...     )
    >>> teacher = sb.TorchClassifier(small_module, n_steps=200, optimizer="adam:lr=0.01")
    >>> model = sb.PATEClassifier(teacher, n_teachers=200, epsilon=1.0, delta=1e-6)
    >>> model.teacher.n_steps
    200
    """

    # stored as given, which scikit-learn's clone needs; `_checked_recipe` checks
    module: Callable[[], Any]
    _: KW_ONLY
    n_steps: int = 100
    batch_size: int = 20
    optimizer: str = "adam"
    device: str = "auto"
    random_state: int | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Train the module.

        Parameters
        ----------
        X : array, sparse matrix or frame of numbers, of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels, no more of them than the module has outputs.

        Raises
        ------
        ParameterError
            If a setting is out of range, or torch is not installed.
        ValueError
            If the rows are no finite numbers, the module cannot take them, or training diverged.
        """
        recipe = self._checked_recipe()
        part = _checked_part(recipe, X, y)
        (state,) = _trained_states(recipe, [part], [public_seed(self.random_state, _STEP)])
        if state is None:
            raise ValueError("training diverged; use a smaller learning rate")
        return self._with_fitted_state(state, part)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the share of every class in `classes_`, of shape (n_rows, n_classes)."""
        return softmax(self._scores(X).astype(np.float64), axis=1)

    def predict(self, X: Any) -> AnyArray:
        """Return the label of every row, of shape (n_rows,)."""
        return np.asarray(self.classes_[self._scores(X).argmax(axis=1)])

    def _scores(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the module's score of every class in `classes_`, shape (n_rows, n_classes); in
        blocks of one shape, the last one filled with zeros."""
        torch, rows, recipe = _import_torch(), _finite_rows(X), self._checked_recipe()
        found = []
        with own_global_states(0), _one_way_to_compute(), torch.no_grad():
            torch.manual_seed(0)
            module = recipe.make().to(recipe.device).eval()
            state = {
                name: torch.from_numpy(np.array(value)).to(recipe.device)
                for name, value in self.state_.items()
            }
            for at in range(0, len(rows), _ROWS_AT_ONCE):
                part = rows[at : at + _ROWS_AT_ONCE]
                filled = np.zeros((_ROWS_AT_ONCE, rows.shape[1]), np.float32)
                filled[: len(part)] = part
                # a copy in memory of torch's own: how numpy's is aligned may decide how torch adds
                block = torch.from_numpy(filled).clone().to(recipe.device)
                scores = torch.func.functional_call(module, state, (block,))
                found.append(scores[: len(part), : len(self.classes_)].float().cpu().numpy())
        return np.concatenate(found)

    def slots(self, n_features: int, n_teachers: int) -> int:
        """Return how many shards of so many features are trained in one stack.

        It follows from the settings, the module, the device and public numbers alone; 1 where the
        module cannot share a stack, or where poison in one slot was seen to reach another.
        """
        recipe = self._checked_recipe()
        needed = _slot_bytes(recipe, n_features)
        if needed is None:
            return 1
        most = max(1, min(_MOST_SLOTS[recipe.device.partition(":")[0]], _MEMORY // max(1, needed)))
        # stacks of one size, of which few slots are empty
        n_slots = -(-n_teachers // -(-n_teachers // most))
        return n_slots if _keeps_apart(recipe, n_features, n_slots) else 1

    @classmethod
    def fit_shards(
        cls, learners: Sequence["TorchClassifier"], parts: Sequence[tuple[Any, Any] | None]
    ) -> list["TorchClassifier | None"]:
        """Train one unfitted learner on each part, all in one stack of a size that `slots` gave.

        Parameters
        ----------
        learners : list of TorchClassifier
            Equal but for their seeds.
        parts : list of (X, y) or None
            Rows and class indices of each; None leaves the slot empty.

        Returns
        -------
        list
            The learners, fitted; None for an empty slot, and where a part alone made its slot fail.

        Privacy
        -------
        Sensitivity : a slot follows from its own part, the seeds and public numbers, bit for bit,
            where `_keeps_apart` says so, here, for the computation's shape; elsewhere the parts are
            taken one by one.
        """
        recipe = learners[0]._checked_recipe()
        own = [
            None if part is None else result_of(partial(_checked_part, recipe, *part))
            for part in parts
        ]
        width = next((part[0].shape[1] for part in own if part is not None), None)
        if width is None:
            return [None] * len(parts)
        # `slots` was asked where the work was handed out, which may be another machine
        if len(parts) > 1 and not _keeps_apart(recipe, width, len(parts)):
            alone = (
                result_of(partial(cls.fit_shards, [learner], [part]))
                for learner, part in zip(learners, parts, strict=True)
            )
            return [None if found is None else found[0] for found in alone]
        seeds = [public_seed(learner.random_state, _STEP) for learner in learners]
        return [
            None if part is None or state is None else learner._with_fitted_state(state, part)
            for learner, part, state in zip(
                learners, own, _trained_states(recipe, own, seeds), strict=True
            )
        ]

    def _with_fitted_state(self, state: Json, part: _Part) -> Self:
        self.state_, self.classes_ = state, part[2]
        self.n_features_in_ = part[0].shape[1]
        return self

    def _checked_recipe(self) -> _Recipe:
        """Return the checked settings.

        Raises
        ------
        ParameterError
            If one is out of range, or torch is not installed.
        """
        torch = _import_torch()
        # a module can be called too, but all teachers would share its parameters
        if not callable(self.module) or isinstance(self.module, torch.nn.Module):
            raise refusal(
                "module",
                f" is {shown(type(self.module).__name__)}; give a class or function that returns a"
                " new torch.nn.Module when it is called.",
            )
        device = self.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if not isinstance(device, str) or device.partition(":")[0] not in _MOST_SLOTS:
            raise refusal(
                "device",
                f" is {shown(device)}; it must be 'auto', 'cpu', or a CUDA device as 'cuda:0'.",
            )
        name, settings = named("optimizer", self.optimizer, _OPTIMIZERS)
        return _Recipe(
            self.module,
            check_count("n_steps", self.n_steps),
            check_count("batch_size", self.batch_size),
            name,
            tuple(settings.items()),
            device,
        )


def _finite_rows(X: Any) -> npt.NDArray[np.float32]:
    """Return rows as finite floats.

    Raises
    ------
    ValueError
        If they are none; the message names no cell.
    """
    table: Any = X.toarray() if hasattr(X, "toarray") else X
    with np.errstate(over="ignore"):
        rows: npt.NDArray[np.float32] = np.array(table, dtype=np.float32, order="C")
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError("X must be a table of finite numbers")
    return rows


def _checked_part(recipe: _Recipe, X: Any, y: Any) -> _Part:
    """Return rows, numbers of their classes, and the classes.

    Raises
    ------
    ValueError
        If they are none, or more classes than the module has outputs; the message names no cell.
    """
    rows, labels = _finite_rows(X), np.asarray(y)
    if labels.shape != (len(rows),) or len(rows) == 0:
        raise ValueError("y must have one label for each of one or more rows")
    classes, numbers = np.unique(labels, return_inverse=True)
    n_outputs = _n_outputs(recipe, rows.shape[1])
    if len(classes) > n_outputs:
        raise ValueError(f"the module has {n_outputs} outputs for {len(classes)} classes")
    return rows, numbers, classes


@lru_cache(maxsize=64)
def _n_outputs(recipe: _Recipe, n_features: int) -> int:
    """Return how many scores the module gives, from rows of zeros."""
    torch = _import_torch()
    with own_global_states(0), _one_way_to_compute(), torch.no_grad():
        zeros = torch.zeros((2, n_features), device=recipe.device)
        return int(_Stack.fresh(recipe, [0]).module.eval()(zeros).shape[1])


def _trained_states(
    recipe: _Recipe, parts: Sequence[_Part | None], seeds: Sequence[int]
) -> list[Json | None]:
    """Return what every slot has become after all steps; slots without a part learn zeros.

    Rows are copied from one table of all parts into batches of a shape that is public: what a part
    holds, and how much, changes its own rows of a batch alone.
    """
    torch = _import_torch()
    # a row of zeros stands for a part that is missing: shapes of batches stay public
    width = next(part[0].shape[1] for part in parts if part is not None)
    empty = np.zeros((1, width), np.float32), np.zeros(1, np.int64)
    tables, labels = zip(*[(part or empty)[:2] for part in parts], strict=True)
    n_drawn, starts = recipe.n_steps * recipe.batch_size, np.cumsum([0, *map(len, labels)])
    drawn = [
        start + _drawn_rows(len(own), n_drawn, seed)
        for start, own, seed in zip(starts[:-1], labels, seeds, strict=True)
    ]
    X, y, rows = (
        torch.from_numpy(each).to(recipe.device)
        for each in (np.concatenate(tables), np.concatenate(labels), np.stack(drawn))
    )
    rows = rows.reshape(len(parts), recipe.n_steps, recipe.batch_size)
    # modules draw from torch's global generator
    with own_global_states(seed_of(*seeds[:1], len(seeds))), _one_way_to_compute():
        stack = _Stack.fresh(recipe, seeds)
        for step in range(recipe.n_steps):
            stack.step(X[rows[:, step]], y[rows[:, step]])
        return stack.states()


def _drawn_rows(n_rows: int, n_drawn: int, seed: int) -> npt.NDArray[np.int64]:
    """Return numbers of rows, of shape (n_drawn,): all in random order, then all in another."""
    generator = np.random.default_rng(seed_of(seed, 1))
    rounds = -(-n_drawn // n_rows)
    orders = generator.permuted(np.tile(np.arange(n_rows), (rounds, 1)), axis=1)
    return orders.ravel()[:n_drawn]
