# SPDX-License-Identifier: Apache-2.0
"""The loss function of a Keras model on the JAX back end, as `mtc.jax` traces it."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any, Iterator, Mapping, Sequence

import jax

from mtc._errors import ModelError
from mtc._trace import places
from mtc.jax._program import Program
from mtc.jax._tree import Tree
from mtc.keras import _model
from mtc.keras._counted import Counted
from mtc.keras._example import Example, Names, flat, outputs_of, rebuilt
from mtc.keras._own_step import has_own_step, own_step

KEY, TRAINING = "key", "training"


class Traced:
    """A model that has what `fit` gives it, and its loss as a function.

    Attributes:
        names: of the plan's entries.
        program: for `mtc.jax`.
        better: "higher" or "lower" for each metric that says it.
    """

    def __init__(self, model: Any, example: Example, paths: Sequence[str] = ()) -> None:
        """`paths`: other names for the model's variables, in their order."""
        self.model = model
        self.example = example
        self.has_loss = example.y is not None or _own_loss(model)
        outputs = outputs_of(model, example.x)
        if self.has_loss:
            self._build_losses()
        self._counted = Counted(model)
        self._own_step = own_step(model) if has_own_step(model) else None
        self.names = Names.of(model, example, outputs)
        variables = model.variables
        paths = paths or _model.unique_paths(variables)
        if len(paths) != len(variables):
            raise ModelError(f"{model.name}: expected {len(paths)} variables, found {len(variables)}")
        name_of = {id(v): path for v, path in zip(variables, paths)}
        self._trainable = list(model.trainable_variables)
        frozen = list(model.non_trainable_variables)
        self._seeds = [v for v in frozen if v.path.endswith("seed_generator_state")]
        self._state = [v for v in frozen if "float" in str(v.dtype)]
        self._frozen = frozen
        params, state = (_tree([name_of[id(v)] for v in vs], [_model.value_of(v) for v in vs])
                         for vs in (self._trainable, self._state))
        leaves = [a for part in (example.x, example.y, example.sample_weight) for _, a in flat(part)]
        weights = ["sample_weight" if array.ndim == 1 else "target" for _, array in flat(example.sample_weight)]
        kinds = [*["input"] * len(self.names.inputs), *["target"] * len(self.names.targets), *weights]
        batch = _tree([*self.names.inputs, *self.names.targets, *self.names.weights], leaves)
        self.program = Program(self._loss, params, state, batch, KEY if self._seeds else None, TRAINING, self._predict,
                               kinds, exact=True)
        self.better = {m.name: "higher" if m._direction == "up" else "lower" for m in _metrics(model)
                       if getattr(m, "_direction", None)}

    def _build_losses(self) -> None:
        """Builds the losses and metrics, as Keras' fit does."""
        example = self.example
        try:
            self.model._symbolic_build(data_batch=(example.x, example.y, example.sample_weight))
        except Exception as error:  # the user's code
            raise places.refusal(error, self.model.name) from error

    def _loss(self, params: Sequence[Any], state: Sequence[Any], batch: Sequence[Any], key: Any = None,
              training: bool = True) -> Any:
        """The loss, the state after it, and the metrics."""
        model = self.model
        x, y, weight = self._unpack(batch)
        others = self._others(state, key)
        if not self.has_loss:
            outputs, after = model.stateless_call(params, others, x, **self._mode(training))
            means = [jax.numpy.mean(o.astype("float32")) for _, o in flat(outputs)]
            return sum(means), (self._kept(others, after), {})
        loss, after, logs = None, None, {}
        if _keras_has_loss(model):
            with self._weighted():
                _, (loss, y_pred, after, metrics) = _loss_and_updates(model)(
                    params, others, self._reset(), x, y, weight, training=training,
                    optimizer_variables=[v.value for v in getattr(model.optimizer, "variables", [])])
            with self._counted.named():
                logs, _ = model._update_metrics_variables(metrics, loss, x, y, y_pred, weight)
        if self._own_step:  # what only one of Keras' test_step and the model's step reports is in both programs
            own_loss, own_after, own_logs = self._own_step(params, others, self._reset(), x, y, weight)
            if training or loss is None:
                loss, after, logs = own_loss, own_after, {**logs, **own_logs}
            else:
                logs = {**own_logs, **logs}
        return loss, (self._kept(others, after), self._scalars(logs))

    @contextlib.contextmanager
    def _weighted(self) -> Iterator[None]:
        """Says which weights do not fit the values of a loss, where Keras says that shapes do not."""
        try:
            yield
        except ValueError as error:
            wrong = [array.shape for _, array in flat(self.example.sample_weight) if array.ndim > 1]
            if not wrong or "shapes" not in str(error):
                raise
            raise ModelError(f"expected a weight for each sample, [n], found {list(wrong[0])}: let a loss of your own "
                             "take weights of steps as targets") from error

    def _scalars(self, logs: Mapping[str, Any]) -> dict[str, Any]:
        """The metrics, without the loss."""
        made = {}
        for name, value in logs.items():
            parts = self._counted.parts(value)
            if parts is not None:
                made.update({f"{name}/{i}": part for i, part in enumerate(parts)})
            elif name != "loss" and value is not None:
                made[name] = value
        for name, value in list(made.items()):
            if jax.numpy.shape(value) != ():
                reason = f"metric {name}: expected a number, found an array {list(jax.numpy.shape(value))}"
                if self.program.dropped is None:
                    raise ModelError(reason)
                self.program.dropped.append(reason)
                del made[name]
        return made

    def _predict(self, params: Sequence[Any], state: Sequence[Any], batch: Sequence[Any], key: Any = None) -> Any:
        x, _, _ = self._unpack(batch)
        outputs, _ = self.model.stateless_call(params, self._others(state, key), x, **self._mode(False))
        return dict(zip(self.names.outputs, [value for _, value in flat(outputs)]))

    def _mode(self, training: bool) -> dict[str, bool]:
        return {"training": training} if self.model._call_has_training_arg else {}

    def _unpack(self, batch: Sequence[Any]) -> list[Any]:
        parts, start = [], 0
        for part in (self.example.x, self.example.y, self.example.sample_weight):
            count = len(flat(part))
            parts.append(rebuilt(part, batch[start:start + count]))
            start += count
        return parts

    def _others(self, state: Sequence[Any], key: Any) -> list[Any]:
        """Values of the variables that are not trained. Without a key those of random layers are not used."""
        values = dict(zip(map(id, self._state), state))
        if key is not None:
            values.update({id(v): jax.random.key_data(jax.random.fold_in(key, i)) for i, v in enumerate(self._seeds)})
        return [values.get(id(v), v.value) for v in self._frozen]

    def _kept(self, before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
        """The state after a step. Variables that are no part of it must stay as they are."""
        known = {id(v) for v in (*self._state, *self._seeds)}
        made = []
        for variable, old, new in zip(self._frozen, before, after):
            if id(variable) in map(id, self._state):
                made.append(old if new is None else new)
            elif id(variable) not in known and new is not None and new is not old:
                raise ModelError(f"{variable.path}: expected a variable of {variable.dtype} that does not change")
        return made

    def _reset(self) -> list[Any]:
        """Values of the metrics' variables before the first batch."""
        with _model.keras().StatelessScope() as scope:
            for metric in self.model.metrics:
                metric.reset_state()
            values = [scope.get_current_value(v) for v in self.model.metrics_variables]
        return [v.value if value is None else value for v, value in zip(self.model.metrics_variables, values)]


def _loss_and_updates(model: Any) -> Any:
    """The model's method of this name. One that Keras cannot call is for a `train_step` of the model's own alone."""
    keras = "optimizer_variables" in inspect.signature(model.compute_loss_and_updates).parameters
    if keras or not has_own_step(model):
        return model.compute_loss_and_updates
    return functools.partial(_model.keras().Model.compute_loss_and_updates, model)


def _own_loss(model: Any) -> bool:
    """Whether the loss may do without targets."""
    return model.compiled and (getattr(model, "_compile_loss", None) is None or has_own_step(model)
                               or bool(_model.own_methods(model, ("compute_loss",))))


def _keras_has_loss(model: Any) -> bool:
    """Whether Keras' own train_step and test_step have a loss."""
    return (not has_own_step(model) or getattr(model, "_compile_loss", None) is not None
            or bool(_model.own_methods(model, ("compute_loss",))))


def _metrics(model: Any) -> list[Any]:
    return [inner for m in model.metrics for inner in (m, *getattr(m, "metrics", []))]


def _tree(names: Sequence[str], arrays: Sequence[Any]) -> Tree:
    return Tree(list(names), list(arrays), jax.tree.structure([0] * len(arrays)), [None] * len(arrays))
