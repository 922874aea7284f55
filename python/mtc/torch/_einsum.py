# SPDX-License-Identifier: Apache-2.0
"""torch.einsum as products of two operands at a time, with each letter once in an operand and no ellipsis.

PyTorch compares sizes to choose an order of three and more operands; here they are multiplied from the left, as
torch.einsum does where opt_einsum is not installed. Source: the description of torch.einsum, "Equation".
"""

from __future__ import annotations

import string
from typing import Any

from mtc.torch._framework import torch

_own = torch.einsum


def einsum(*given: Any) -> Any:
    """As torch.einsum."""
    if not isinstance(given[0], str):  # operands and lists of their axes
        operands, lists = list(given[:-1:2] if len(given) % 2 else given[::2]), list(given[1::2])
        equation = ",".join(map(_letters, lists)) + (f"->{_letters(given[-1])}" if len(given) % 2 else "")
        return einsum(equation, *operands)
    equation, operands = given[0].replace(" ", ""), list(given[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        return _own(*given)  # PyTorch's error
    if not arrow:
        every = "".join(terms).replace(".", "")
        output = ("..." if "." in inputs else "") + "".join(sorted(x for x in set(every) if every.count(x) == 1))
    terms, output = _without_ellipsis(terms, output, operands)
    for i, term in enumerate(terms):
        terms[i], operands[i] = _diagonals(term, operands[i])
    _drop_ones(terms, operands)
    while len(terms) > 1:
        needed = set("".join(terms[2:]) + output)
        made = "".join(dict.fromkeys(x for x in terms[0] + terms[1] if x in needed)) if len(terms) > 2 else output
        operands[:2] = [_own(f"{terms[0]},{terms[1]}->{made}", *operands[:2])]
        terms[:2] = [made]
    return operands[0] if terms[0] == output else _own(f"{terms[0]}->{output}", operands[0])


def _letters(axes: Any) -> str:
    """The text of a list of axes, numbers from 0 to 51."""
    return "".join("..." if axis is Ellipsis else string.ascii_letters[axis] for axis in axes)


def _without_ellipsis(terms: list[str], output: str, operands: list[Any]) -> tuple[list[str], str]:
    """With a letter for each axis of an ellipsis, which stands for the last ones of the longest."""
    counts = [x.ndim - len(t) + 3 if "..." in t else 0 for t, x in zip(terms, operands)]
    unused = [x for x in string.ascii_letters if x not in "".join(terms) + output]
    names = "".join(unused[:max(counts)])
    terms = [t.replace("...", names[len(names) - n:]) for t, n in zip(terms, counts)]
    return terms, output.replace("...", names)


def _diagonals(term: str, x: Any) -> tuple[str, Any]:
    """An operand with each letter once: of two axes with one letter the diagonal."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first, second = term.index(letter), term.rindex(letter)
            x = x.diagonal(0, first, second)
            term = "".join(t for i, t in enumerate(term) if i not in (first, second)) + letter
    return term, x


def _drop_ones(terms: list[str], operands: list[Any]) -> None:
    """Removes axes of size 1 whose letter has another size in another operand, as broadcasting has it."""
    for letter in dict.fromkeys("".join(terms)):
        users = [i for i, term in enumerate(terms) if letter in term]
        ones = [i for i in users if operands[i].shape[terms[i].index(letter)] == 1]
        for i in ones if len(ones) < len(users) else ones[1:]:
            operands[i] = operands[i].squeeze(terms[i].index(letter))
            terms[i] = terms[i].replace(letter, "")
