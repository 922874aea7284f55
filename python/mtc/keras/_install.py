# SPDX-License-Identifier: Apache-2.0
"""The methods of `keras.Model` that are replaced by MTC's."""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import pathlib
import runpy
import sys
import threading
import types
import warnings
import weakref
from typing import Any, Callable, Optional

from mtc._errors import DataError, Error, FallbackWarning, ModelError
from mtc._process import process, processes
from mtc.keras import _evaluate, _fit, _live, _model, _training

# Methods of a model that would have to be called in each step.
_TRAINS = ("make_train_function",)
_TESTS = ("test_step", "make_test_function")
_PREDICTS = ("predict_step", "make_predict_function")
_STEPS = {"fit": _TRAINS, "evaluate": _TESTS, "predict": _PREDICTS,
          "train_on_batch": _TRAINS, "test_on_batch": _TESTS, "predict_on_batch": _PREDICTS}

_Run = Callable[[Any, dict[str, Any]], Any]  # of a model and the arguments that were given
# What says that MTC did not begin.
_REFUSALS = (Error, TypeError, ValueError, AttributeError, NotImplementedError)

_originals: dict[str, Callable[..., Any]] = {}
_settings: dict[str, Any] = {}
_told: weakref.WeakSet[Any] = weakref.WeakSet()  # models that were warned of
_said = False  # that a fit runs through MTC
_through: collections.Counter[str] = collections.Counter()  # calls that ran through MTC, by method
_beside: dict[tuple[str, str], int] = {}  # calls that ran in Keras, by method and reason
_busy = threading.local()  # within a call that is counted: Keras' fit calls its evaluate


def install(*, strict: bool = False, devices: Optional[str] = None, **options: Any) -> None:
    """From now on `fit`, `evaluate`, `predict` and the `_on_batch` methods of Keras models run through MTC.

    Args:
        strict: what cannot run through MTC raises a ModelError or DataError, in place of running in Keras.
        devices: as of `mtc.fit`. None: as many as `keras.distribution.DataParallel` or `MirroredStrategy` have, where
            one of them is set; else as of `mtc.Session`.
        options: as of `mtc.fit`: precision, shards, seed, target, ...
    """
    _through.clear()
    _beside.clear()
    _settings.clear()
    strict = strict or processes() > 1  # each would train in Keras on its own
    _settings.update(options, strict=strict, devices=devices)
    if "keras" in sys.modules:
        _replace()
    elif not any(isinstance(finder, _WhenImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenImported("keras", _replace))  # until then a script may choose the back end


def uninstall() -> None:
    """Keras is as it was."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _WhenImported)]
    if not _originals:
        return
    _live.release_all()
    model = _model.keras().Model
    for name in list(_originals):
        setattr(model, name, _originals.pop(name))


def _replace() -> None:
    model = _model.keras().Model
    for name in _STEPS:
        if name not in _originals:
            _originals[name] = getattr(model, name)
            setattr(model, name, _wrapper(name, _originals[name]))


class _WhenImported(importlib.abc.MetaPathFinder):
    """Does something as soon as somebody has imported a module, such as to replace the methods of Keras."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then
        self._asks = False  # the other finders

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname != self._name or self._asks:
            return None
        self._asks = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asks = False
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                run(module)
                if self in sys.meta_path:  # TensorFlow looks for Keras before it is imported
                    sys.meta_path.remove(self)
                    self._then()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _wrapper(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    runs: dict[str, _Run] = {"fit": _run_fit, "evaluate": _run_evaluate, "predict": _run_predict}
    run = runs[name] if name in runs else _run_step(name, original)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        given = signature.bind(self, *arguments, **keywords).arguments  # TypeError as of Keras
        given.update(given.pop("kwargs", {}))
        given.pop("self", None)
        outermost = not getattr(_busy, "here", False)
        _busy.here = True
        try:
            _refuse_own_steps(self, name)
            result = run(self, given)
            _through[name] += outermost
            return result
        except _Refusal as refusal:
            if outermost:
                reason = (name, str(refusal.reason))
                _beside[reason] = _beside.get(reason, 0) + 1
            if _settings["strict"]:
                raise refusal.reason from None
            if self not in _told:
                _told.add(self)
                warnings.warn(f"{self.name}: {name} runs in Keras and not through MTC: {refusal.reason}",
                              FallbackWarning, stacklevel=2)
            _live.release(self)
            with _own_steps(self) if name == "fit" else contextlib.nullcontext():
                return original(self, **{**given, **refusal.replaced})
        finally:
            if outermost:
                _busy.here = False

    return method


class _Refusal(Exception):
    """MTC did not begin; what has to be given to Keras in place of the caller's arguments."""

    def __init__(self, reason: Error, **replaced: Any) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.replaced = replaced


def _refuse_own_steps(model: Any, name: str) -> None:
    base = _model.keras().Model
    for method in _STEPS[name]:
        if getattr(type(model), method, None) is not getattr(base, method, None):
            raise _Refusal(ModelError(f"{model.name}: expected Keras' own {method}, found one of "
                                      f"{type(model).__name__}"))


def _run_fit(model: Any, given: dict[str, Any]) -> Any:
    settings = _common(model)
    numbers = ("epochs", "initial_epoch", "steps_per_epoch", "validation_steps", "validation_freq")
    try:
        _fit.check_numbers(**{"epochs": 1, **{name: given[name] for name in numbers if name in given}})
        prepared = _training.Training(
            given.get("x"), given.get("y"), given.get("sample_weight"), given.get("class_weight"),
            given.get("validation_data"), given.get("validation_split", 0.0), bool(given.get("shuffle", True)),
            settings.get("seed") or 0)
    except (Error, TypeError, ValueError) as error:
        raise _Refusal(_as_error(error)) from None
    session = {key: settings.pop(key) for key in ("devices", "seed") if key in settings}
    try:
        prepared.compile(model, given.get("batch_size"), given.get("verbose", "auto"), **settings)
        prepared.check()
    except _REFUSALS as error:
        x, validation = prepared.untouched()
        raise _Refusal(_as_error(error), **({"x": x} if "x" in given else {}),
                       **({"validation_data": validation} if "validation_data" in given else {})) from None
    _tell(model, "fit")
    names = ("epochs", "verbose", "callbacks", "initial_epoch", "steps_per_epoch", "validation_steps",
             "validation_freq", "shuffle")
    loop = {name: given[name] for name in names if name in given}
    return _fit.run(model, prepared, allow_nan=True, metrics=True, **loop, **session)


def _run_evaluate(model: Any, given: dict[str, Any]) -> Any:
    callbacks = given.get("callbacks")
    if isinstance(callbacks, _model.keras().callbacks.CallbackList):  # Keras' own fit validates
        raise _Refusal(DataError("a validation inside of Keras' fit"))
    return _guarded(_evaluate.evaluate, model, {k: v for k, v in given.items() if not k.startswith("_")})


def _run_predict(model: Any, given: dict[str, Any]) -> Any:
    for layer in model._flatten_layers():
        known = getattr(_model.keras().layers, type(layer).__name__, None) is type(layer)
        if layer._seed_generators and not known:
            raise _Refusal(ModelError(f"{layer.name}: expected random numbers in training alone, found a SeedGenerator "
                                      f"of a custom layer: its numbers may differ from one predict to the next"))
    return _guarded(_evaluate.predict, model, given)


def _guarded(function: Callable[..., Any], model: Any, given: dict[str, Any]) -> Any:
    settings = _common(model)
    settings.pop("seed", None)
    allowed = {"allow_nan": True} if function is _evaluate.evaluate else {}
    if hasattr(given.get("x"), "__next__"):
        raise _Refusal(DataError("expected arrays or batches that can be taken twice, found a generator"))
    try:
        return function(model, **given, **settings, **allowed)
    except _REFUSALS as error:
        raise _Refusal(_as_error(error)) from None


def _run_step(name: str, original: Callable[..., Any]) -> _Run:
    step: Callable[..., Any] = getattr(_live, name)
    resets = "reset_metrics" in inspect.unwrap(original).__code__.co_names

    def run(model: Any, given: dict[str, Any]) -> Any:
        if not resets and name != "predict_on_batch":  # older ones
            raise _Refusal(ModelError(f"expected a Keras whose {name} gives the metrics of its batch, found Keras "
                                      f"{_model.keras().__version__}, which adds up those of all batches"))
        try:
            result = step(model, **given, **_common(model))
        except _REFUSALS as error:
            raise _Refusal(_as_error(error)) from None
        _tell(model, name)
        return result

    return run


def _as_error(error: Exception) -> Error:
    return error if isinstance(error, Error) else DataError(f"{type(error).__name__}: {error}")


def _common(model: Any) -> dict[str, Any]:
    settings = {key: value for key, value in _settings.items() if key not in ("strict", "devices")}
    devices = _settings.get("devices") or _distributed(model)
    if _runs_python(model):
        settings["by"] = "file"  # a trace would take the code of custom layers once, with what else it does
    # Keras computes the metrics that MTC does not have: with one of them all runs there.
    return {**settings, "drop": False, **({"devices": devices} if devices else {})}


def _runs_python(model: Any) -> bool:
    """Whether the caller asked for Python code at every step."""
    not_compiled = _model.keras().backend.backend() == "jax" and model.compiled and not model.jit_compile
    return bool(getattr(model, "run_eagerly", False) or not_compiled)


def _distributed(model: Any) -> Optional[str]:
    """Devices of the distribution that is set, or of the strategy of the model's scope."""
    count = 0
    distribution = _model.keras().distribution.distribution()
    if distribution is not None:
        mesh = getattr(distribution, "device_mesh", None)
        count = int(mesh.devices.size) if mesh is not None else 0
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is not None:
        count = max(count, int(getattr(strategy, "num_replicas_in_sync", 1)))
    return f"cpu:{count}" if count > 1 else None


def _tell(model: Any, name: str) -> None:
    global _said
    if not _said and process() == 0:
        _said = True
        print(f"mtc: {name} of {model.name} runs through MTC", file=sys.stderr)


def summary() -> str:
    """Which calls since `install` ran through MTC, and which ran in Keras and why."""
    return _summary(has_steps=False)


def _summary(has_steps: bool) -> str:
    """`has_steps`: other lines say what ran of the steps of functions."""
    names = list(_STEPS)
    ran = [f"{_count(_through[name])} of {name}" for name in names if _through[name]]
    others = [f"{_count(count)} of {name} in Keras ({reason.splitlines()[0][:300]})"
              for (name, reason), count in sorted(_beside.items(), key=lambda item: names.index(item[0][0]))]
    if not ran and not others:
        return ("no call of this script ran through MTC: it made none of fit, evaluate, predict and the _on_batch "
                "methods of a Keras model; a loop of its own runs in its framework alone")
    said = [f"{', '.join(ran)} ran through MTC"] if ran else ["no call of this script ran through MTC"]
    return "; ".join([*(said if ran or not has_steps else []), *others])


def _count(calls: int) -> str:
    return f"{calls} call{'s' if calls != 1 else ''}"


def main(arguments: Optional[list[str]] = None) -> None:
    """Runs a script with `install`."""
    parser = argparse.ArgumentParser(prog="python -m mtc.keras", description="Runs a script of Keras through MTC.")
    parser.add_argument("--strict", action="store_true", help="what cannot run through MTC is an error")
    parser.add_argument("--devices", help="cpu:2, cuda:0-3, ...")
    parser.add_argument("script", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    options = parser.parse_args(arguments)
    install(strict=options.strict, devices=options.devices)
    sys.meta_path.insert(0, _WhenImported("tensorflow", functools.partial(_replace_functions, options.devices)))
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = str(pathlib.Path(options.script).resolve().parent)
    try:
        runpy.run_path(options.script, run_name="__main__")
    finally:
        steps = _lines_of_functions() if process() == 0 else []
        for line in steps:
            print(f"mtc: {line}", file=sys.stderr)
        if process() == 0 and (not steps or _through or _beside):
            print(f"mtc: {_summary(bool(steps))}", file=sys.stderr)


def _replace_functions(devices: Optional[str]) -> None:
    """Functions of TensorFlow that train become plans, in a script that is run by `main`."""
    _tf_function: Any = importlib.import_module("mtc.keras._tf_function")
    _tf_function.install(devices)


def _own_steps(model: Any) -> contextlib.AbstractContextManager[None]:
    """While Keras trains a model, whose own `train_step` may be a plan in a script that is run by `main`."""
    if "mtc.keras._tf_function" in sys.modules:
        _tf_fit: Any = importlib.import_module("mtc.keras._tf_fit")
        if _tf_fit.has_own_step(model):
            made: contextlib.AbstractContextManager[None] = _tf_fit.steps(model, _settings["devices"])
            return made
    return contextlib.nullcontext()


def _lines_of_functions() -> list[str]:
    module = sys.modules.get("mtc.keras._tf_function")
    return list(module.lines()) if module is not None else []
