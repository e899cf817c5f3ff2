"""Copies of one module with parameters stacked along a first axis: one slot for each shard.

What a slot becomes must be a function of its own rows, its own seed and public numbers, to the last
bit: otherwise one record could change another teacher's vote. So every computation has a shape that
public numbers fix, whatever the shards hold; an empty slot computes on zeros; and `keeps_apart`
tries the very module in the very shapes before any private row is touched.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from secretballot._seeded import own_global_states, seed_of
from secretballot.exceptions import ParameterError
from secretballot.foreign_code import result_of

Tensors = dict[str, Any]

# Draw as many numbers as their result has, whatever the values: nobody's data decide where the
# draws of the next slot begin.
_STEADY_DRAWS = frozenset(
    [
        *("bernoulli", "bernoulli_", "native_dropout", "normal", "normal_", "random_", "uniform_"),
        *("rand", "rand_like", "randint", "randint_like", "randn", "randn_like"),
    ]
)
_TRIAL_STEPS = 2  # a poisoned slot has poisoned parameters from the second on
_POISONS = (float("nan"), 1e38, float("-inf"))


def import_torch() -> Any:
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
class Recipe:
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


class Stack:
    """Slots of one module on a device.

    Parameters
    ----------
    recipe : Recipe
    trained, carried : dict of str to tensor of shape (n_slots, ...)
        Parameters that steps change, and frozen parameters and buffers.
    module : Module
        Whose shape all slots have; its own parameters serve nothing.

    A stack of one slot is computed as it is, without vectorisation.
    """

    def __init__(self, recipe: Recipe, trained: Tensors, carried: Tensors, module: Any) -> None:
        self._recipe, self._module = recipe, module
        self.trained, self.carried = trained, carried

    @classmethod
    def fresh(cls, recipe: Recipe, seeds: Sequence[int]) -> "Stack":
        """Return a stack of modules whose first parameters follow from one seed each.

        Raises
        ------
        ValueError
            If what is made is no module, or differs in shape from one time to the next.
        """
        torch = import_torch()
        modules = []
        for seed in seeds:
            # one seed for each: parameters of one do not depend on how many come before
            torch.manual_seed(seed)
            module = recipe.make()
            if not isinstance(module, torch.nn.Module):
                raise ValueError(f"module made a {type(module).__name__} and no torch.nn.Module")
            modules.append(module)
        trained, carried = list[Tensors](), list[Tensors]()
        for module in modules:
            named = {name: value.detach() for name, value in module.named_parameters()}
            still = {name for name, p in module.named_parameters() if not p.requires_grad}
            trained.append({name: named[name] for name in named if name not in still})
            carried.append(
                {name: named[name] for name in named if name in still}
                | dict(module.named_buffers())
            )
        if not trained[0]:
            raise ValueError("the module has no parameters to train")
        return cls(
            recipe,
            _stacked_tensors(trained, recipe.device),
            _stacked_tensors(carried, recipe.device),
            modules[0].to(recipe.device),
        )

    @classmethod
    def of_states(cls, recipe: Recipe, states: Sequence[dict[str, Any] | None]) -> "Stack":
        """Return a stack of finished slots; those that are None are zeros."""
        torch = import_torch()
        like = next(state for state in states if state is not None)
        zeros = {name: np.zeros_like(value) for name, value in like.items()}
        tensors = [
            {name: torch.from_numpy(np.array(value)) for name, value in (state or zeros).items()}
            for state in states
        ]
        torch.manual_seed(0)
        module = recipe.make().to(recipe.device)
        return cls(recipe, {}, _stacked_tensors(tensors, recipe.device), module)

    @cached_property
    def _optimizer(self) -> Any:
        """What changes every number by its own slope."""
        optim = import_torch().optim
        kind = {"adam": optim.Adam, "sgd": optim.SGD}[self._recipe.optimizer]
        return kind([*self.trained.values()], foreach=False, **dict(self._recipe.settings))

    def __len__(self) -> int:
        return len(next(iter({**self.trained, **self.carried}.values())))

    def states(self) -> list[dict[str, Any] | None]:
        """Return each slot's parameters and buffers as arrays, None where one is not finite."""
        arrays = {
            name: value.cpu().numpy() for name, value in {**self.trained, **self.carried}.items()
        }
        states: list[dict[str, Any] | None] = []
        for slot in range(len(self)):
            state = {name: np.array(value[slot]) for name, value in arrays.items()}
            finite = all(bool(np.isfinite(value).all()) for value in state.values())
            states.append(state if finite else None)
        return states

    def step(self, X: Any, y: Any) -> None:
        """Take one step of every slot down its own loss.

        `X` has shape (n_slots, batch_size, n_features) and `y` shape (n_slots, batch_size).
        """
        torch = import_torch()
        self._module.train()
        slopes = torch.func.grad(self._batch_loss, has_aux=True)
        if len(self) > 1:
            found, carried = torch.func.vmap(slopes, randomness="different")(
                self.trained, self.carried, X, y
            )
        else:
            own = _first_slot(self.trained), _first_slot(self.carried), X[0], y[0]
            found, carried = (_stacked_tensors([one], None) for one in slopes(*own))
        # modules may have a mode that no gradient reaches
        self.carried = {name: value.detach() for name, value in carried.items()}
        for name, value in self.trained.items():
            value.grad = found[name].detach()
        self._optimizer.step()

    def outputs(self, X: Any) -> Any:
        """Return what every slot says of the same rows, of shape (n_slots, n_rows, n_outputs).

        `X` has shape (n_rows, n_features).
        """
        torch = import_torch()
        self._module.eval()
        state = {**self.trained, **self.carried}

        def one(own: Tensors, rows: Any) -> Any:
            return torch.func.functional_call(self._module, own, (rows,))

        with torch.no_grad():
            if len(self) > 1:
                return torch.func.vmap(one, (0, None), randomness="different")(state, X)
            return one(_first_slot(state), X)[None]

    def _batch_loss(
        self, trained: Tensors, carried: Tensors, X: Any, y: Any
    ) -> tuple[Any, Tensors]:
        torch = import_torch()
        # a module may write into what it carries, as batch normalisation does
        after = {name: value.clone() for name, value in carried.items()}
        logits = torch.func.functional_call(self._module, {**trained, **after}, (X,))
        if logits.ndim != 2:
            raise ValueError(f"the module's output has {logits.ndim} axes where it must have 2")
        return torch.nn.functional.cross_entropy(logits, y), after


@contextmanager
def one_way_to_compute() -> Iterator[None]:
    """Compute in one thread, in single precision, by algorithms that repeat themselves.

    Enter it inside `own_global_states`, which puts all of it back.
    """
    torch = import_torch()
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
def slot_bytes(recipe: Recipe, n_features: int) -> int | None:
    """Return about how many bytes one slot takes in a step, None where slots cannot share one.

    They cannot where the module cannot be vectorised, or draws random numbers in a way that may
    depend on its rows. Found out on made-up rows.
    """
    torch = import_torch()

    def measured() -> int | None:
        stack = Stack.fresh(recipe, [0, 1])
        watch = _operation_watch(torch)
        with watch:
            stack.step(*_made_up(recipe, stack, n_features, recipe.batch_size))
        if not watch.draws <= _STEADY_DRAWS:
            return None
        kept = sum(value.nbytes for value in (*stack.trained.values(), *stack.carried.values()))
        return int(watch.bytes + 4 * kept) // 2

    with own_global_states(0), one_way_to_compute():
        return result_of(measured)


@lru_cache(maxsize=64)
def keeps_apart(recipe: Recipe, n_features: int, n_slots: int, n_rows: int, steps: bool) -> bool:
    """Return whether poison in some slots leaves all others as they were, bit for bit.

    Tried on made-up rows with the module, the device and the shapes that the shards will have: once
    as it is, once with every even slot poisoned, once with every odd one.

    Parameters
    ----------
    recipe : Recipe
    n_features, n_slots, n_rows : int
        The shape of what will be computed.
    steps : bool
        Whether steps are tried, or else outputs.
    """
    torch = import_torch()
    if slot_bytes(recipe, n_features) is None:
        return False

    def computed(poisoned: int | None) -> list[Any]:
        seed_everything = seed_of(n_slots, n_rows)
        stack = Stack.fresh(recipe, range(n_slots))
        X, y = _made_up(recipe, stack, n_features, n_rows)
        if poisoned is not None:
            for slot in range(poisoned, n_slots, 2):
                poison = _POISONS[slot // 2 % len(_POISONS)]
                if steps:
                    X[slot], y[slot] = poison, 0
                    continue
                # public rows are the same for all; what differs are the parameters
                for value in (*stack.trained.values(), *stack.carried.values()):
                    if value.is_floating_point():
                        value[slot] = poison
        torch.manual_seed(seed_everything)
        if not steps:
            return [stack.outputs(X[0])]
        for _ in range(_TRIAL_STEPS):
            stack.step(X, y)
        return [*stack.trained.values(), *stack.carried.values()]

    def all_same() -> bool:
        clean = computed(None)
        return all(
            _same_bits(before[1 - first :: 2], after[1 - first :: 2])
            for first in (0, 1)
            for before, after in zip(clean, computed(first), strict=True)
        )

    with own_global_states(0), one_way_to_compute():
        return bool(result_of(all_same))


def _same_bits(one: Any, other: Any) -> bool:
    mine, its = (value.contiguous().cpu().numpy().tobytes() for value in (one, other))
    return bool(mine == its)


def _made_up(recipe: Recipe, stack: Stack, n_features: int, n_rows: int) -> tuple[Any, Any]:
    """Return rows of shape (n_slots, n_rows, n_features) and labels that every module has."""
    torch = import_torch()
    X = torch.rand((len(stack), n_rows, n_features))
    y = torch.arange(len(stack) * n_rows).reshape(len(stack), n_rows) % 2
    return X.to(recipe.device), y.to(recipe.device)


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


def _stacked_tensors(parts: Sequence[Tensors], device: str | None) -> Tensors:
    torch = import_torch()
    if any(part.keys() != parts[0].keys() for part in parts):
        raise ValueError("module made modules of different shapes")
    stacked = {name: torch.stack([part[name] for part in parts]) for name in parts[0]}
    return stacked if device is None else {name: one.to(device) for name, one in stacked.items()}


def _first_slot(tensors: Tensors) -> Tensors:
    return {name: value[0] for name, value in tensors.items()}
