# SPDX-License-Identifier: Apache-2.0
"""The check of mtc.torch: faults that it has to find, and what it allows."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import mtc
import mtc.torch
from mtc._trace import Graph, guard, layout
from mtc._trace import elementwise as e
from mtc.torch import _handlers

torch.set_num_threads(1)


def sgd(module):
    return torch.optim.SGD(module.parameters(), 0.1)


def compiled(module, example, loss=None, optimizer=sgd, **options):
    return mtc.torch.compile(module, example, loss=loss, optimizer=optimizer(module), devices="cpu:1", cache=False,
                             **{"verbose": 0, **options})


def net(*layers, features=6, rows=3):
    """A module, and an example without zeros or large numbers."""
    torch.manual_seed(5)
    module = nn.Sequential(nn.Linear(features, 5), *layers, nn.Linear(5, 2))
    return module, (torch.randn(rows, features), torch.randn(rows, 2))


def squared(output, labels):
    return ((output - labels) ** 2).mean()


def planted(monkeypatch, name, change):
    """Changes what the operation `name` becomes."""
    right = _handlers.HANDLERS[name]
    monkeypatch.setitem(_handlers.HANDLERS, name, lambda c, *given: change(c, right, *given))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.table, self.out = nn.Embedding(9, 4), nn.Linear(4, 9)

    def forward(self, ids):
        return self.out(torch.tanh(self.table(ids)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.attention, self.out = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True), nn.Linear(8, 1)

    def forward(self, x):
        return self.out(torch.relu(self.attention(x, x, x, need_weights=False)[0]))


def of_words(logits, labels):
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def words():
    ids = torch.tensor([[1, 2, 3], [4, 5, 6], [2, 2, 1]])
    return Words(), (ids, ids.roll(1, 1)), of_words


def sequences():
    return Attention(), (torch.randn(3, 5, 8), torch.randn(3, 5, 1)), squared


def normalized():
    return (*net(nn.BatchNorm1d(5)), squared)


def of(name):
    return lambda: (*net(getattr(nn, name)()), squared)


def at_zero(_c, right, x):
    """0.1 too large where every value is 0."""
    return e.binary("add", right(_c, x), e.binary("mul", e.cast(e.compare("eq", x, 0.0), "f32"), 0.1))


def at_last(c, right, table, ids, *rest):
    """0.1 too large for the last row."""
    more = e.binary("mul", e.cast(e.compare("eq", ids, 8), "f32"), 0.1)
    return e.binary("add", right(c, table, ids, *rest), layout.reshape(more, (*more.shape, 1)))


def with_gradient(_c, right, x, *rest):
    """The right value, and a gradient that is too large."""
    more = e.binary("mul", x, 0.05)
    return e.binary("add", right(_c, x, *rest), e.binary("sub", more, x.graph.stop_gradient(more)))


# The operation that is wrong, how, the model, and what the check says.
FAULTS = {
    "gradient": ("tanh", with_gradient, of("Tanh"), "the example within"),
    "behind attention with dropout": ("relu", lambda c, right, x: e.binary("mul", right(c, x), 1.01), sequences,
                                      "the example within"),
    "row of zeros": ("tanh", at_zero, lambda: (*zeros_matter(), squared), "a row of zeros within"),
    "large numbers": ("relu", lambda c, right, x: e.binary("minimum", right(c, x), 30.0), of("ReLU"),
                      "inputs times 100 within"),
    "last row of a table": ("embedding", at_last, words, "whole numbers and masks at their ends within"),
    "ignored labels": ("cross_entropy_loss", lambda c, right, x, labels, weight, reduction, _ignored, *rest: right(
        c, x, labels, weight, reduction, -7, *rest), words, "a sample whose labels are ignored within"),
    "buffer": ("_native_batch_norm_legit_functional", lambda c, right, *given: right(c, *given[:6], 0.2, *given[7:]),
               normalized, "the buffer 1.running_"),
}


def zeros_matter():
    torch.manual_seed(5)
    return nn.Sequential(nn.Tanh(), nn.Linear(6, 2)), (torch.randn(3, 6), torch.randn(3, 2))


@pytest.mark.parametrize("fault", FAULTS)
def test_check_finds_a_planted_fault(fault, monkeypatch):
    name, change, make, said = FAULTS[fault]
    module, example, loss = make()
    compiled(module, example, loss).close()
    planted(monkeypatch, name, change)
    with pytest.raises(mtc.ModelError, match=said):
        compiled(module, example, loss)
    compiled(module, example, loss, check=False).close()


def test_check_finds_a_wrong_prediction(monkeypatch):
    right = Graph.output
    monkeypatch.setattr(Graph, "output", lambda graph, name, value: right(graph, name, e.binary("mul", value, 1.01)))
    module, example = net(nn.ReLU())
    with pytest.raises(mtc.ModelError, match="found 1 of .* differ by more:\n  the prediction output"):
        compiled(module, example, squared)


def test_check_finds_a_gradient_where_all_are_zero(monkeypatch):
    module, example = net(nn.ReLU())
    with torch.no_grad():
        module[0].bias -= 1e4
        module[2].weight.zero_()
        module[2].bias.zero_()
    example = (example[0], torch.zeros(3, 2))
    compiled(module, example, squared).close()
    planted(monkeypatch, "pow", with_gradient)
    with pytest.raises(mtc.ModelError, match="found [1-4] of 7 arrays that differ by more:\n  the gradient of"):
        compiled(module, example, squared)


def test_check_finds_a_fault_behind_weights_of_zero(monkeypatch):
    module, example = net(nn.Tanh())
    with torch.no_grad():
        module[2].weight.zero_()
    planted(monkeypatch, "tanh", with_gradient)
    with pytest.raises(mtc.ModelError, match="the example with other weights within"):
        compiled(module, example, squared)


def test_a_module_that_does_not_repeat_itself_is_no_reference():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x):
            return self.layer(x) * random.random()

    with pytest.raises(mtc.ModelError, match="expected a module that computes the same twice"):
        compiled(Noisy(), (torch.randn(4, 3), torch.randn(4, 1)), squared)


class Moody(nn.Module):
    """Does something else in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x) * (1 if self.training else 3)


def test_code_that_asks_for_the_mode_trains_but_does_not_evaluate(capsys):
    batch = torch.randn(4, 3), torch.randn(4, 1)
    with_mode = compiled(Moody(), batch, squared, verbose=1)
    assert "step.evaluate and step.predict are refused: Moody: expected code that is the" in capsys.readouterr().err
    with_mode.train_on_batch(batch)
    for call in (with_mode.predict, lambda x: with_mode.test_on_batch(batch), lambda x: with_mode.evaluate([batch])):
        with pytest.raises(mtc.ModelError, match=r"step.to_module\(\).eval\(\)"):
            call(batch[0])
    with_mode.close()


def test_dropout_in_evaluation_mode_too_trains_but_does_not_evaluate(capsys):
    class Always(nn.Module):
        def __init__(self, *given):
            super().__init__()
            self.layer, self.given = nn.Linear(3, 1), given

        def forward(self, x):
            return nn.functional.dropout(self.layer(x), 0.5, *self.given)

    batch = torch.randn(4, 3), torch.randn(4, 1)
    step = compiled(Always(), batch, squared, verbose=1)
    assert "step.predict are refused: Always: expected dropout in training mode alone" in capsys.readouterr().err
    step.train_on_batch(batch)
    with pytest.raises(mtc.ModelError, match=r"write F.dropout\(x, p, training=self.training\)"):
        step.predict(batch[0])
    step.close()
    compiled(Always(False), batch, squared).predict(batch[0])


def test_a_trace_that_differs_from_its_module_is_told_from_a_fault(monkeypatch):
    batch = torch.randn(4, 3), torch.randn(4, 1)

    class Traced(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x):
            return self.layer(x) * (2 if torch.compiler.is_exporting() else 1)

    with pytest.raises(mtc.ModelError, match="the trace differs from the module, before MTC reads it"):
        compiled(Traced(), batch, squared)
    planted(monkeypatch, "linear", lambda c, right, *given: e.binary("mul", right(c, *given), 1.01))
    with pytest.raises(mtc.ModelError, match="the difference is MTC's"):
        compiled(nn.Linear(3, 1), batch, squared)


def test_the_line_says_what_was_compared(capsys):
    module, example = net(nn.ReLU())
    compiled(module, example, squared, verbose=1).close()
    said = capsys.readouterr().err
    assert "Sequential: agrees with PyTorch within 1e-04; the worst is " in said
    assert "(the loss, 4 gradients, 1 prediction of the example, and of 4 batches made of it (a row of zeros; " in said


# The judge


def values(loss, **gradients):
    return {guard.LOSS: np.float32(loss), **{guard.GRADIENT + n: np.float32(v) for n, v in gradients.items()}}


def test_a_small_difference_may_be_a_rounding_and_a_large_one_is_decided_by_float64():
    def reference(single, double, moved):
        return lambda exact, noise: moved if noise else double if exact else single

    right = values(1, a=[1, 2])
    near, far = values(1, a=[1, 2.1]), values(1, a=[1, 3])
    verdict = guard.judge(near, reference(right, right, near), 1e-4)
    assert verdict.moved == ["the gradient of a"]
    assert "own numbers move as far" in guard.conclusion("F", {"": verdict}, 1e-4)
    with pytest.raises(guard.Different):  # changed weights do not explain a third
        guard.judge(far, reference(right, right, far), 1e-4)
    verdict = guard.judge(far, reference(right, values(1, a=[1, 2.9]), right), 1e-4)
    assert verdict.doubled == ["the gradient of a"]
    with pytest.raises(guard.Different):
        guard.judge(near, reference(right, right, right), 1e-4)


def test_what_pytorch_has_no_number_for_is_not_compared():
    theirs = values(np.nan, a=[np.inf, 2])
    assert guard.errors(values(1, a=[7, 2]), theirs) == {"the loss": 0, "the gradient of a": 0}
    assert not guard.errors(values(1, a=[7, np.nan]), theirs)["the gradient of a"] <= 1


def test_gradients_of_zero_are_compared_beside_the_loss():
    assert guard.errors(values(2, a=[1e-3]), values(2, a=[0]))["the gradient of a"] == pytest.approx(0.5)
    assert not guard.errors(values(2, a=[np.nan]), values(2, a=[0]))["the gradient of a"] <= 1


# The optimizer

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.01, weight_decay=0.01),
    "momentum": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, 1e-3, weight_decay=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-5, betas=(0.8, 0.99)),
    "adamax": lambda p: torch.optim.Adamax(p, 1e-3),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-3, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 1e-2),
    "adadelta": lambda p: torch.optim.Adadelta(p, 1.0),
}
CLIPPED = {"adamw": {"clip_norm": 0.1}, "momentum": {"clip_value": 0.01}}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_updates_are_those_of_pytorch(name, capsys, monkeypatch):
    """And where a parameter of the optimizer is not PyTorch's, the check says so."""
    def make(module):
        return OPTIMIZERS[name](module.parameters())

    module, example = net(nn.Tanh())
    options = CLIPPED.get(name, {})
    compiled(module, example, squared, make, verbose=1, **options).close()
    assert f"; 3 updates of {type(make(module)).__name__} are PyTorch's" in capsys.readouterr().err
    right, key = mtc.torch._update.evaluate, {"adagrad": "eps", "sgd": "lr"}.get(name, "betas.0")
    key = {"momentum": "momentum", "rmsprop": "alpha", "adadelta": "rho"}.get(name, key)

    def wrong(tree, hypers):
        return right(tree, hypers) + (0.02 if f"/{key}" in str(tree) else 0)

    monkeypatch.setattr(mtc.torch._update, "evaluate", wrong)
    with pytest.raises(mtc.ModelError, match="of PyTorch makes of the same gradients, found after [123] of 3 updates"):
        compiled(module, example, squared, make, **options)


def test_the_updates_go_on_from_the_state_and_the_groups(capsys):
    module, example = net(nn.Tanh())
    groups = [{"params": [module[0].weight, module[2].weight], "weight_decay": 0.1},
              {"params": [module[0].bias, module[2].bias], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, 1e-3)
    squared(module(example[0]), example[1]).backward()
    optimizer.step()
    compiled(module, example, squared, lambda _: optimizer, verbose=1).close()
    assert "; 3 updates of AdamW are PyTorch's" in capsys.readouterr().err


def test_a_full_check_takes_all_samples_and_batches(capsys, monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", -1.0)
    rows = []
    right = mtc.torch._check._Mine.of
    monkeypatch.setattr(mtc.torch._check._Mine, "of", lambda self, arrays: (
        rows.append(len(next(iter(arrays.values())))), right(self, arrays))[1])
    module, example = net(nn.ReLU())
    compiled(module, example, squared, verbose=1).close()
    assert rows == [2, 2] and "of 1 batch made of it" in capsys.readouterr().err
    rows.clear()
    compiled(module, example, squared, verbose=1, check="full").close()
    assert rows == [3, 3, 3, 1, 3] and "of 4 batches made of it" in capsys.readouterr().err


class Unused(nn.Module):
    """A parameter that the loss does not depend on, which PyTorch's optimizers pass over, and an infinite one."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(4, 3), nn.Parameter(torch.ones(3))
        self.mask = nn.Parameter(torch.tensor([0.0, -torch.inf, 0.0]), requires_grad=False)

    def forward(self, x):
        return (self.used(x) + self.mask).softmax(-1)


@pytest.mark.parametrize("double", [False, True])
def test_parameters_that_nothing_reads_and_those_of_float64(double, capsys):
    module = Unused().double() if double else Unused()
    x, y = torch.randn(4, 4), torch.rand(4, 3)
    x, y = (x.double(), y.double()) if double else (x, y)
    optimizer = torch.optim.AdamW(module.parameters(), weight_decay=0.5)
    step = mtc.torch.compile(module, (x, y), loss=functional.mse_loss, optimizer=optimizer, verbose=1)
    assert "agrees with PyTorch" in capsys.readouterr().err
    step.train_on_batch((x, y))
    step.to_module()
    assert module.unused.tolist() == [1.0] * 3
    assert module.used.weight.dtype == (torch.float64 if double else torch.float32)


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 * ctx.saved_tensors[0]


class Clipped(Squared):
    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-1e-3, 1e-3)


class Applied(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function.apply(x)


@pytest.mark.parametrize(("function", "check"), [(Clipped, True), (Reversed, False)])
def test_a_backward_that_is_not_linear_is_named(function, check):
    module, example = net(Applied(function))
    with pytest.raises(mtc.ModelError, match=f"{function.__name__} .torch.autograd.Function. is taken as linear"):
        compiled(module, example, squared, check=check)


@pytest.mark.parametrize("function", [Reversed, Squared])
def test_a_backward_of_the_callers_own_passes(function):
    forward = vars(function)["forward"]
    module, example = net(Applied(function))
    assert compiled(module, example, squared).fit([example], verbose=0)
    assert vars(function)["forward"] is forward  # as before


def test_gradients_that_are_0_but_for_roundings_pass():
    module, example = net(nn.Softmax(-1))
    module = nn.Sequential(module, nn.Softmax(-1))
    compiled(module, example, lambda output, _: output.mean())


def test_a_few_elements_may_differ_by_more_where_pytorchs_do():
    """As behind a ReLU that a rounding switches; not where all of them do, or PyTorch's stay."""
    def judged(mine, moved):
        def reference(_double, noise):
            return {guard.LOSS: np.float32(1), gradient: moved if noise else plain}
        return guard.judge({guard.LOSS: np.float32(1), gradient: mine}, reference, 1e-4)

    gradient, plain = guard.GRADIENT + "w", np.ones(10000, "float32")
    few, all_of_them = plain.copy(), plain * np.float32(1.2)
    few[3] = 1.2
    assert judged(few, few).moved == [gradient]
    for mine, moved in ((few, plain), (all_of_them, all_of_them)):
        with pytest.raises(guard.Different):
            judged(mine, moved)


class Masked(nn.Module):
    """Attention with what models of transformers make of `attention_mask`: 0, or the most negative number."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.table, self.parts, self.out = nn.Embedding(9, 8), nn.Linear(8, 24), nn.Linear(8, 9)

    def forward(self, input_ids, attention_mask, labels):
        parts = self.parts(self.table(input_ids)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        hidden = torch.where(attention_mask[:, None, None] > 0, 0.0, torch.finfo(torch.float32).min)
        found = functional.scaled_dot_product_attention(*parts, attn_mask=hidden)
        return {"loss": functional.cross_entropy(self.out(found.transpose(1, 2).flatten(2)).mT, labels)}


@pytest.mark.parametrize("fault", [False, True])
def test_a_row_that_a_mask_of_numbers_hides(fault, capsys, monkeypatch):
    """PyTorch's fused kernel has gradients there that are too large; MTC's are those of products and a softmax."""
    module = Masked()
    ids = torch.randint(0, 9, (4, 5), generator=torch.Generator().manual_seed(0))
    example = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
    example["attention_mask"][1, 3:] = 0
    if fault:
        planted(monkeypatch, "scaled_dot_product_attention",
                lambda c, right, *given: e.binary("mul", right(c, *given), 0.99))
        with pytest.raises(mtc.ModelError, match="expected what PyTorch computes"):
            compiled(module, example)
        return
    hidden = {**example, "attention_mask": torch.ones_like(ids)}
    hidden["attention_mask"][0] = 0
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        module(**hidden)["loss"].backward()
    wanted = {name: p.detach() - 0.1 * p.grad for name, p in module.named_parameters()}
    step = compiled(module, example, verbose=1)
    assert "attention as products and a softmax" in capsys.readouterr().err
    step.train_on_batch(hidden)
    step.to_module()
    for name, p in module.named_parameters():
        np.testing.assert_allclose(p.detach(), wanted[name], rtol=1e-4, atol=1e-6, err_msg=name)


class Named(nn.Module):
    """Layers with the names of operations."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.conv2d, self.batch_norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.scaled_dot_product_attention, self.softmax = nn.Linear(4, 2), nn.Softmax(-1)

    def forward(self, x):
        return self.softmax(self.scaled_dot_product_attention(torch.tanh(self.batch_norm(self.conv2d(x))).mean((2, 3))))


def test_layers_may_have_names_of_operations(capsys):
    compiled(Named(), (torch.randn(4, 3, 6, 6), torch.randn(4, 2)), squared, verbose=1)
    assert "agrees with PyTorch" in capsys.readouterr().err
