# SPDX-License-Identifier: Apache-2.0
"""JAX' own harnesses of primitives, float32: loss, gradients and predictions beside `jax.value_and_grad`.

The floats of a harness are parameters p, and each of 5 samples computes fun(p * (1 + x)) by vmap. Arrays may be of the
sample or of all samples; the first form counts that MTC takes.
"""

import os
import random
import warnings

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
import numpy as np

ROWS, SCATTERS = 5, 60  # samples; scatters at most, of hundreds
UNFIT = {  # texts in names
    ("custom_linear_solve_symmetric",): "it promises symmetric matrices, which those of the samples are not",
    ("scatter", "modes_out_of_bounds", "PROMISE_IN_BOUNDS"): "it promises places within bounds, which these are not",
    ("digamma_shape",): "a sample stands at a pole, where the loss is no number",
    ("top_k_sort_inf_nan",): "it orders NaNs by their sign, which MTC does not see (docs/jax.md)",
}
H = {}


def harnesses():
    from jax._src.internal_test_util import test_harnesses

    if not H:
        H.update({h.fullname: h for h in test_harnesses.all_harnesses if h.dtype == np.float32})
    return H


def cases():
    groups = {}
    for name, harness in harnesses().items():
        groups.setdefault(harness.group_name if harness.group_name.startswith("scatter") else "", []).append(name)
    chosen = groups.pop("")
    for group, names in groups.items():
        chosen += random.Random(group).sample(names, min(len(names), SCATTERS // len(groups)))
    random.Random(1).shuffle(chosen)
    return chosen


def run(name):
    import jax
    import mtc

    warnings.simplefilter("ignore")
    jax.config.update("jax_default_matmul_precision", "highest")
    harness = harnesses()[name]
    if not harness.filter("cpu"):
        return {"status": "na", "message": "not on CPUs"}
    with jax.numpy_rank_promotion("allow"):
        arguments = harness.dyn_args_maker(np.random.RandomState(7))
    leaves = [np.asarray(a) for a in jax.tree.leaves(arguments)]
    if any(a.dtype.kind not in "fiub" or a.dtype == np.float64 for a in leaves):
        return {"status": "na", "message": "another type"}
    for texts, reason in UNFIT.items():
        if all(text in name for text in texts):
            return {"status": "na", "message": reason}
    floats, whole = (sum(a.dtype.kind in kinds for a in leaves) for kinds in ("f", "iub"))
    forms = [form for form, fits in (("data", True), ("shared", floats > 1 or whole), ("table", floats and whole),
                                     ("constant", whole), ("once", True)) if fits]
    first = None
    for form in forms:
        if form == "once" and first is not None and first["status"] != "na":
            break  # vmap can be taken, and MTC refuses
        try:
            result = one(harness, arguments, form)
        except mtc.Error as error:
            result = {"status": "refused", "message": str(error)[:1500]}
        if result["status"] in ("right", "wrong"):
            return result
        first = first if first is not None and first["status"] != "na" else result
    return first


def one(harness, arguments, form):
    import jax
    import jax.numpy as jnp

    leaves, tree = jax.tree.flatten(arguments)
    leaves = [np.asarray(a) for a in leaves]
    floats = [i for i, a in enumerate(leaves) if a.dtype == np.float32]
    whole = [i for i in range(len(leaves)) if i not in floats]
    own = [] if form == "table" else floats[:1] if form == "shared" else floats  # of each sample
    params = {**{f"p{i}": leaves[i] for i in floats}, "extra": np.float32(0.5)}
    numbers = np.random.default_rng(3)
    batch = {f"x{i}": (0.1 * numbers.uniform(-1, 1, (ROWS, *leaves[i].shape))).astype("f4") for i in own}
    batch["one"] = np.linspace(0.5, 1.5, ROWS).astype("f4")
    rowed = form in ("data", "table")
    if rowed:
        batch.update({f"i{i}": np.repeat(leaves[i][None], ROWS, 0) for i in whole})

    def outputs(params, batch):
        def of_sample(row):
            values = [jnp.asarray(a) for a in leaves]
            for i in floats:
                values[i] = params[f"p{i}"] * (1 + row[f"x{i}"]) if i in own else params[f"p{i}"]
            for i in whole if rowed else ():
                values[i] = row[f"i{i}"]
            made = jax.tree.leaves(harness.dyn_fun(*jax.tree.unflatten(tree, values)))
            if harness.group_name == "cholesky":  # what is above the diagonal is not said; gradients have it 0
                made = [jnp.tril(o) for o in made]
            return [o.astype(jnp.promote_types(o.dtype, jnp.float32)) for o in made]

        if form == "once":
            return [o[None] for o in of_sample({k: v.mean(0) for k, v in batch.items() if k[0] == "x"})]
        return jax.vmap(of_sample)({k: v for k, v in batch.items() if k != "one"})

    try:
        weights = [numbers.uniform(0.5, 1.5, s.shape[1:]).astype("f4") for s in jax.eval_shape(outputs, params, batch)]
    except Exception as error:  # JAX cannot do it
        return {"status": "na", "message": f"{type(error).__name__}: {error}"[:200]}

    def loss_fn(params, batch):
        total = jnp.mean(params["extra"] * batch["one"])
        for o, w in zip(outputs(params, batch), weights):
            total = total + jnp.mean(o * w) if o.size else total
        return total

    def predict(params, batch):
        return tuple(o.reshape(o.shape[0], -1) for o in outputs(params, batch))

    try:
        wanted_loss, wanted = jax.jit(jax.value_and_grad(loss_fn))(params, batch)
        wanted_out = jax.jit(predict)(params, batch)
    except Exception as error:
        return {"status": "na", "message": f"{type(error).__name__}: {error}"[:200]}

    def exact():
        """Gradients in float64; None: JAX cannot compute them."""
        try:
            with jax.enable_x64(True):
                return jax.grad(loss_fn)(*({k: v.astype("f8") if v.dtype == np.float32 else v for k, v in d.items()}
                                           for d in (params, batch)))
        except Exception:  # noqa: BLE001
            return None

    predict = None if form == "once" else predict
    result = compare(loss_fn, predict, params, batch, wanted_loss, wanted, wanted_out, exact)
    if result["status"] == "wrong" and not np.isclose(wanted_loss, loss_fn(params, batch), rtol=1e-4, equal_nan=True):
        return {"status": "na", "message": "JAX computes something else when it compiles it as a whole"}
    return result


def compare(loss_fn, predict, params, batch, wanted_loss, wanted, wanted_out, exact):
    import mtc.jax

    problems = []
    with mtc.jax.compile(loss_fn, params, batch, optimizer=mtc.jax.sgd(1.0, momentum=0.5), batch_size=ROWS,
                         predict=predict, devices="cpu:1", check=False, verbose=0, cpu="native") as step:
        if predict is not None:
            found = step.predict(batch)
            found = list(found.values()) if isinstance(found, dict) else list(found) if isinstance(
                found, (tuple, list)) else [found]
            problems += [f"prediction {k} differs" for k, (a, b) in enumerate(zip(found, wanted_out))
                         if not close(a, b, 1e-4, 2e-5)]
        loss = step.train_on_batch(batch, allow_nan=True)["loss"]
        if not np.isclose(loss, float(wanted_loss), rtol=1e-4, atol=1e-10, equal_nan=True):
            problems.append(f"loss: found {loss:.8g}, expected {float(wanted_loss):.8g}")
        variables = step.session.variables
        for name, gradient in wanted.items():
            slot = f"sgd/{name}_momentum"
            a = np.asarray(variables[slot] if slot in variables else np.zeros(np.shape(gradient)), "f8").ravel()
            b = np.asarray(gradient, "f8").ravel()
            good = np.isfinite(b)
            error, slack = np.linalg.norm(a[good] - b[good]), 1e-4 * np.linalg.norm(b[good]) + 1e-12
            if error > slack and (double := exact()) is not None:  # rounding, where JAX' own float32 is as far off
                slack += 4 * np.linalg.norm(np.asarray(double[name]).ravel()[good] - b[good])
            if not np.array_equal(np.isnan(a), np.isnan(b)) or not error <= slack:
                problems.append(f"gradient of {name}: found {a[:4]}, expected {b[:4]}")
    return {"status": "wrong" if problems else "right", "message": "\n".join(problems)[:1500]}


def close(a, b, share, floor):
    """Whether elements differ by a share of themselves and of the median of those that are not 0."""
    a, b = np.asarray(a, "f8").ravel(), np.asarray(b, "f8").ravel()
    sizes = np.abs(b[np.isfinite(b) & (b != 0)])
    return a.size == b.size and np.allclose(a, b, rtol=share, atol=floor * (np.median(sizes) if sizes.size else 1),
                                            equal_nan=True)
