# SPDX-License-Identifier: Apache-2.0
"""Live Keras models: their plans, and which of their variables is which of the plan's."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import json
import re
import sys
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Optional, Union

import numpy as np

from mtc import _cache, _compile, _library
from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._structure import Structure
from mtc._tensors import Array, TensorInfo
from mtc._versions import warn_if_newer

if TYPE_CHECKING:
    from mtc.keras._compile import Request


_PAGE = "docs/keras-traces.md"
LOSS_VARIABLES = 2  # of a model's metrics before they are built: the running mean of the loss


def keras() -> Any:
    """Keras, imported when it is first needed."""
    module = importlib.import_module("keras")
    warn_if_newer("keras")
    return module


def is_model(value: Any) -> bool:
    """Whether it is a Keras model."""
    return hasattr(value, "compiled") and hasattr(value, "trainable_variables") and hasattr(value, "to_json")


def check_model(model: Any, compiled: bool = True) -> None:
    """ModelError for what is no model, is not compiled, or has no variables yet."""
    if not is_model(model):
        raise ModelError(f"expected a Keras model or the path of a model's file, found {type(model).__name__}")
    if compiled and not model.compiled:
        raise ModelError(f"{model.name}: expected a compiled model, found one without a loss and an optimizer: "
                         "call model.compile()")
    if not model.built:
        raise ModelError(f"{model.name}: expected a built model, found one whose input shape is not known: "
                         "begin it with keras.Input, or call model.build()")


def build(model: Any, x: Any) -> None:
    """Builds a model that does not know its input yet, as Keras' fit does, for any batch."""
    if not is_model(model) or model.built or x is None:
        return
    if isinstance(model, keras().Sequential) and hasattr(x, "shape"):
        try:
            model.build((None, *x.shape[1:]))
        except (ValueError, TypeError):
            pass  # check_model says it
        except Exception as error:  # the user's code, or Keras' account of it
            from mtc._trace import places

            raise places.refusal(error, str(model.name)) from error
    else:
        from mtc.keras._example import build as build_by_call

        build_by_call(model, x)


def own_methods(model: Any, names: Iterable[str]) -> list[str]:
    """Which of these methods of `keras.Model` a class has in its own form."""
    base = keras().Model
    return [name for name in names if getattr(type(model), name, None) is not getattr(base, name, None)]


def refuse_own(model: Any, method: str) -> None:
    """Raises a ModelError where the class has its own `test_step` or `predict_step`."""
    if own_methods(model, (method,)):
        raise ModelError(f"{model.name}: expected Keras' own {method}, found one of {type(model).__name__}")


def compile_live(model: Any, settings: dict[str, Any], verbose: Union[int, str], request: Request, *,
                 cache: bool = True, with_weights: bool, by: Optional[str] = None,
                 of_file: Optional[Mapping[str, Any]] = None, description: Optional[str] = None,
                 drop: bool = False) -> tuple[Plan, Structure]:
    """The plan of a model, and how the caller's data becomes that of the plan.

    Without its weights the plan's are anybody's: whoever uses it sets them. `by`: "file" or "trace"; None: the file,
    and a trace where that is refused. `of_file`: settings that a trace does not need. `drop`: leaves out metrics,
    with a warning each, where the model cannot be compiled with all of them.

    Raises:
        ModelError: neither way is possible.
    """
    def compiled(more: Mapping[str, Any]) -> tuple[Plan, Structure]:
        return _compile_either(model, {**settings, **more}, verbose, request, cache, with_weights, by, of_file,
                               description)

    try:
        return compiled({})
    except ModelError:
        if not drop or settings.get("drop_unsupported_metrics") or getattr(model, "_compile_metrics", None) is None:
            raise
        with contextlib.suppress(ModelError):
            return compiled({"drop_unsupported_metrics": 1})
        raise


def _compile_either(model: Any, settings: dict[str, Any], verbose: Union[int, str], request: Request, cache: bool,
                    with_weights: bool, by: Optional[str], of_file: Optional[Mapping[str, Any]],
                    description: Optional[str]) -> tuple[Plan, Structure]:
    if by not in (None, "file", "trace"):
        raise ModelError(f"expected by of file or trace, found {by}")
    own = own_methods(model, ("train_step", "compute_loss", "compute_metrics"))
    if "train_step" in own and keras().backend.backend() != "jax":
        raise ModelError(f"{model.name}: expected Keras' own train_step, found one of {type(model).__name__}, which "
                         "can be traced on the JAX back end alone")
    reason = f"{model.name}: {type(model).__name__} has its own {' and '.join(own)}" if own else ""
    reason = reason or _own_function(model, settings)
    if reason and by == "file":
        raise ModelError(f"{reason}: a trace takes Python code ({_PAGE})")
    if by != "trace" and not reason:
        try:
            plan = _of_file(model, {**settings, **(of_file or {})}, verbose, cache, with_weights, description)
            return plan, structure(model, plan)
        except ModelError as error:
            if by == "file":
                raise
            reason = str(error)
    from mtc.keras import _compile as _trace

    try:
        return _trace.compile(model, request, settings, verbose, cache, with_weights)
    except ModelError as error:
        if not reason or by or str(error) == reason:  # which then is about the options
            raise
        lines = [line for line in reason.splitlines() if not (": note: a trace takes " in line and _PAGE in line)]
        raise ModelError("\n".join([f"{error}\nnor is it read as a file: {lines[0]}", *lines[1:]])) from None


def _own_function(model: Any, settings: Mapping[str, Any]) -> str:
    """That a loss or metric is a function of the caller's: a file has its name alone, which may be one of Keras'."""
    from mtc.keras._example import flat

    compiled = getattr(model, "_compile_metrics", None)
    given = [] if settings.get("loss") else [getattr(model, "loss", None)]
    if not settings.get("metrics"):
        given += [getattr(compiled, name, None) for name in ("_user_metrics", "_user_weighted_metrics")]
    for _, function in (part for each in given for part in flat(each)):
        module = str(getattr(function, "__module__", ""))
        if inspect.isfunction(function) and module.split(".")[0] != "keras":
            return (f"{model.name}: expected losses and metrics of Keras, found the function {function.__name__} of "
                    f"{module}")
    return ""


_refused: dict[str, str] = {}  # why models of a description are not read as files


def _of_file(model: Any, settings: dict[str, Any], verbose: Union[int, str], cache: bool, with_weights: bool,
             description: Optional[str]) -> Plan:
    """The plan that the importer of files makes."""
    check_model(model, compiled=not settings.get("loss"))
    settings = {"kinks": keras().backend.backend(), **_undecayed(model), **settings}
    kind = _cache.key(description or describe(model), settings)
    if kind in _refused:
        raise ModelError(_refused[kind])
    try:
        return _saved(model, settings, verbose, cache, with_weights, description)
    except ModelError as error:
        _refused[kind] = str(error)
        raise


def _saved(model: Any, settings: dict[str, Any], verbose: Union[int, str], cache: bool, with_weights: bool,
           description: Optional[str]) -> Plan:
    parts: list[Any] = [description or describe(model), settings, _library.compiler_identity(), bool(with_weights)]
    if with_weights:
        digest = hashlib.blake2b()
        for variable in [*model.variables, *getattr(getattr(model, "optimizer", None), "variables", [])]:
            digest.update(np.ascontiguousarray(value_of(variable)).data)
        parts.append(digest.hexdigest())
    name = file_name(model)
    return _compile.cached(_cache.key(*parts),
                           lambda: _compile.compile_saved(functools.partial(save, model), name, settings,
                                                          verbose), cache)


def _undecayed(model: Any) -> dict[str, Any]:
    """What `exclude_from_weight_decay` said of the optimizer, which Keras does not save."""
    optimizer = inner_optimizer(model) if getattr(model, "optimizer", None) is not None else None
    if optimizer is None or not getattr(optimizer, "weight_decay", None) or not hasattr(optimizer, "_use_weight_decay"):
        return {}
    names = {name for variable, name in _named(model, _sequentials(model), "")
             if not optimizer._use_weight_decay(variable)}
    return {"no_weight_decay": ",".join(sorted(names))} if names else {}


def _named(model: Any, left_out: set[str], scope: str) -> Iterable[tuple[Any, str]]:
    """Trainable variables with their names in a saved model: a Sequential's begin with its name."""
    scope += model.name + "/" if isinstance(model, keras().Sequential) else ""
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from _named(layer, left_out, scope)
        else:
            for variable in layer.trainable_variables:
                yield variable, scope + _canonical(variable.path, left_out)


@contextlib.contextmanager
def _without_tensorflow() -> Iterator[None]:
    """Keras does not import TensorFlow meanwhile, which takes seconds.

    It asks for the types of TensorFlow when it writes a model. Where nobody has imported it, nothing has such a type.
    """
    lazy = getattr(importlib.import_module("keras.src.utils.module_utils"), "tensorflow", None)
    unknown = "tensorflow" not in sys.modules and getattr(lazy, "_available", False) is None
    try:
        if unknown:
            lazy._available = False  # type: ignore[union-attr]
        yield
    finally:
        if unknown:
            lazy._available = None  # type: ignore[union-attr]


def file_name(model: Any) -> str:
    """What the file of a model is called, without its extension."""
    return re.sub(r"[^\w.-]", "_", str(model.name)) or "model"


def save(model: Any, path: str) -> None:
    """Saves a model; ModelError where Keras cannot."""
    try:
        with _without_tensorflow():
            model.save(path)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise _not_saved(model, error) from None


def _not_saved(model: Any, error: Exception) -> ModelError:
    return ModelError(f"{model.name}: expected a model that can be saved, found one that cannot: {error}")


def describe(model: Any) -> str:
    """The model's configuration, with that of its training: what its plan depends on besides variables.

    The learning rate is one of these, unless a schedule gives it.
    """
    try:
        with _without_tensorflow():
            config = json.loads(model.to_json())
    except (NotImplementedError, TypeError, ValueError) as error:
        raise _not_saved(model, error) from None
    optimizer = (config.get("compile_config") or {}).get("optimizer")
    while isinstance(optimizer, dict) and isinstance(optimizer.get("config"), dict):
        settings = optimizer["config"]
        if isinstance(settings.get("learning_rate"), (int, float)):
            settings["learning_rate"] = None
        optimizer = settings.get("inner_optimizer")
    return json.dumps(config)


def structure(model: Any, plan: Plan) -> Structure:
    """Names of the model's inputs and outputs, in its order."""
    tensors = list(model.inputs)
    given = getattr(model, "input", None)  # a Sequential may have none
    keys = {key: tensor.name for key, tensor in given.items()} if isinstance(given, dict) else {}
    return Structure.of(plan, [t.name for t in tensors], keys, list(getattr(model, "output_names", [])))


def build_metrics(model: Any, plan: Plan) -> None:
    """Lets the model's losses and metrics know what they are of, as Keras' fit does, unless they know.

    Callbacks ask them which way is better, and `model.metrics` lists those of each output.
    """
    if len(model.metrics_variables) > LOSS_VARIABLES:
        return
    zeros = {t.name: np.zeros((1, *t.shape[1:]), t.dtype) for t in (*plan.outputs, *plan.targets)}
    outputs = output_like(model, {t.name: zeros[t.name] for t in plan.outputs})
    targets = Structure.of(plan).targets
    given = dict(zip([t.name for t in plan.outputs], [zeros[name] if name else None for name in targets]))
    with contextlib.suppress(Exception):  # then they do not know
        model.compute_metrics(None, output_like(model, given), outputs)
        model.compute_loss(None, output_like(model, given), outputs)
        model.reset_metrics()


def returned(model: Any, plan: Plan, logs: dict[str, float], as_dict: bool) -> Any:
    """Losses and metrics as Keras returns them: a dict, a list, or the loss alone as a number."""
    logs = dict(sorted(logs.items()))
    if as_dict or len(logs) == 1:
        return logs if as_dict else next(iter(logs.values()))
    build_metrics(model, plan)
    return model._flatten_metrics_in_order(logs)


def output_like(model: Any, outputs: dict[str, Any], structure: Optional[Structure] = None) -> Any:
    """Predictions in the structure of the model's outputs."""
    if structure is not None and structure.pack is not None:
        return structure.pack([outputs[name] for name in structure.outputs])
    wanted = getattr(model, "output", None)
    if isinstance(wanted, dict):
        return {key: outputs[key] for key in wanted} if set(wanted) == set(outputs) else outputs
    values = list(outputs.values())
    return values if isinstance(wanted, (list, tuple)) else values[0]


def _sequentials(model: Any) -> set[str]:
    """Names of the Sequential models in the tree; Keras leaves them out of paths when it loads a file."""
    kind = keras().Sequential
    names = {model.name} if isinstance(model, kind) else set()
    for layer in getattr(model, "layers", []):
        if hasattr(layer, "layers"):
            names |= _sequentials(layer)
    return names


def _canonical(path: str, left_out: set[str]) -> str:
    return "/".join(part for part in path.split("/") if part not in left_out)


class _Names:
    """Entries of a plan by name; entries of the same name are given in order."""

    def __init__(self, infos: Iterable[tuple[str, TensorInfo]]) -> None:
        self._infos: dict[str, list[TensorInfo]] = {}
        for name, info in infos:
            self._infos.setdefault(name, []).append(info)

    def take(self, name: str) -> Optional[TensorInfo]:
        found = self._infos.get(name)
        return found.pop(0) if found else None

    def left(self) -> list[TensorInfo]:
        """Those that nobody took."""
        return [info for found in self._infos.values() for info in found]


def value_of(variable: Any) -> Array:
    """A copy of a variable's elements."""
    value = variable.value
    if hasattr(value, "read_value"):  # of TensorFlow, where a strategy may have several copies
        value = value.read_value()
    array: Array = keras().ops.convert_to_numpy(value)
    return array


def inner_optimizer(model: Any) -> Any:
    """The optimizer without the one that Keras puts around it in float16."""
    optimizer = model.optimizer
    return getattr(optimizer, "inner_optimizer", optimizer)


def unique_paths(variables: Iterable[Any]) -> list[str]:
    """The paths of variables, of which equal ones get numbers."""
    counts: dict[str, int] = {}
    names = []
    for variable in variables:
        used = counts.get(variable.path, 0)
        counts[variable.path] = used + 1
        names.append(f"{variable.path}_{used}" if used else variable.path)
    return names


def match_variables(model: Any, plan: Plan) -> list[tuple[Any, TensorInfo]]:
    """Pairs of a Keras variable and the plan's variable of the same meaning.

    Keras alone has seeds of random layers and counts of adapted ones; the plan alone has nothing of the model.
    """
    left_out = _sequentials(model)
    weights = [v for v in plan.variables if v.kind != "optimizer"]
    slots = [v for v in plan.variables if v.kind == "optimizer"]
    optimizer = inner_optimizer(model) if getattr(model, "optimizer", None) is not None else None
    exact = {v.path for v in model.variables} >= {w.name for w in weights if not _is_scalar(w)}
    left_out = set() if exact else left_out
    by_name = _Names((_canonical(w.name, left_out), w) for w in weights)
    named = [(variable, by_name.take(_canonical(variable.path, left_out)) or by_name.take(unique))
             for variable, unique in zip(model.variables, unique_paths(model.variables))]
    pairs = [(v, info) for v, info in named if info is not None and tuple(v.shape) == info.shape]
    pairs += _match_ends([v for v, info in named if info is None], by_name.left())
    flat = [(variable.path.replace("/", "_") + "_", info.name.replace("/", "_") + "_") for variable, info in pairs]
    if optimizer is not None and optimizer.built:
        pairs += _match_optimizer(optimizer, [*weights, *slots], flat)
    matched = {info.name for _, info in pairs}
    missing = [w.name for w in weights if w.name not in matched and not _is_scalar(w)]
    if missing:
        raise ModelError(f"{model.name}: expected a variable of the model for each of the plan's, "
                         f"found none for {', '.join(missing)}")
    return pairs


def _match_ends(variables: list[Any], infos: list[TensorInfo]) -> list[tuple[Any, TensorInfo]]:
    """Pairs of variables whose layer was made by another model, under whose name their paths begin.

    The ends of both names are equal, with that of the layer; names of which several end so give no pair.
    """
    ends: dict[tuple[str, ...], tuple[list[Any], list[TensorInfo]]] = {}
    for variable in variables:
        ends.setdefault(tuple(variable.path.split("/")[-2:]), ([], []))[0].append(variable)
    for info in infos:
        ends.setdefault(tuple(info.name.split("/")[-2:]), ([], []))[1].append(info)
    return [(mine[0], theirs[0]) for mine, theirs in ends.values()
            if len(mine) == len(theirs) == 1 and tuple(mine[0].shape) == theirs[0].shape]


def _is_scalar(info: TensorInfo) -> bool:
    """Whether it is a number of the optimizer's, or of loss scaling, and not the model's."""
    return info.shape == () and info.kind != "trainable"


def _match_optimizer(optimizer: Any, infos: list[TensorInfo],
                     flat: list[tuple[str, str]]) -> list[tuple[Any, TensorInfo]]:
    """`flat`: what names of a variable's slots begin with, in Keras and in the plan."""
    tails = {info.name.partition("/")[2]: info for info in infos}
    by_tail = _Names((info.name.partition("/")[2], info) for info in infos)
    pairs = []
    for variable in optimizer.variables:
        name = variable.path.rpartition("/")[2] if "/" in variable.path else variable.path
        info = None
        if "u_product" in tails and re.fullmatch(r"variable(_\d+)?", variable.path):  # Nadam's has no name
            info = by_tail.take("u_product")
        elif name in ("iteration", "learning_rate"):
            info = by_tail.take(name)
        else:
            starts = [(mine, theirs) for mine, theirs in flat if name.startswith(mine)]
            # The longest name that begins it; of equal ones the first whose slot is not taken.
            for mine, theirs in sorted(starts, key=lambda pair: -len(pair[0])):
                info = by_tail.take(theirs + name[len(mine):])
                if info is not None:
                    break
        if info is not None and tuple(variable.shape) == info.shape:
            pairs.append((variable, info))
    return pairs
