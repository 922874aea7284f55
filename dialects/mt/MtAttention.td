// SPDX-License-Identifier: Apache-2.0
//
// Attention: softmax(scale Q K^T) V of each head, as one op, so that no kernel has to store the scores.
//
// Queries are [?, ..., T, H * D], keys [?, ..., S, G * D], values [?, ..., S, G * V]: a line holds all heads of a
// place, as a dense layer computes them. H = `heads`; G = `key_heads` (H without it) divides H, and head h reads the
// keys and values of head h / (H / G): grouped and multi-query heads. Equal axes may stand between the batch axis and
// the places. What follows is of one sample, one index of these axes and one head.
//
// Query t sees key s unless one of these hides it:
//   causal       s > t
//   window = w   |t - s| >= w
//   mask         false at [..., h, t, s]. Its type broadcasts to [?, ..., H, T, S]: [?, 1, 1, S] is a padding mask; the
//                axes between batch and heads are all 1, all missing or all there
// A query that sees no key has the result 0 and no gradient.
#ifndef MT_ATTENTION_TD
#define MT_ATTENTION_TD

include "dialects/mt/MtBase.td"

class Mt_Attention<string mnemonic, dag operands, string from, string to, list<Trait> traits = []>
    : Mt_PureOp<mnemonic, !listconcat([Mt_Rounds, Mt_Contraction, Mt_SameFloats, Mt_OwnKernel<>, Mt_InferType],
                                      traits)> {
  let arguments = !con(operands, (ins DefaultValuedAttr<I64Attr, "1">:$heads, OptionalAttr<I64Attr>:$key_heads,
                                  UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<F32Attr>:$scale));
  let results = (outs Mt_AnyFloat:$result);
  let assemblyFormat = from # [{ (`mask` $mask^)? (`heads` `=` $heads^)? (`key_heads` `=` $key_heads^)?
    (`causal` $causal^)? (`window` `=` $window^)? (`scale` `=` $scale^)? attr-dict `:` }] # to # [{
    (`,` type($mask)^)? }];
}
class Mt_DroppingAttention<string mnemonic, dag operands, string from, string to, list<Trait> traits = []>
    : Mt_Attention<mnemonic, operands, from, to, !listconcat([AttrSizedOperandSegments], traits)> {
  let arguments = !con(operands, (ins Optional<Mt_Bool>:$mask, Optional<Mt_Step>:$hash,
                                  Optional<Mt_Step>:$step,
                                  DefaultValuedAttr<I64Attr, "1">:$heads, OptionalAttr<I64Attr>:$key_heads,
                                  UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<F32Attr>:$scale,
                                  OptionalAttr<StrAttr>:$stream, OptionalAttr<F32Attr>:$rate));
  let assemblyFormat = from # [{ (`mask` $mask^)? (`heads` `=` $heads^)? (`key_heads` `=` $key_heads^)?
    (`causal` $causal^)? (`window` `=` $window^)? (`scale` `=` $scale^)? (`dropout` $stream^)?
    (`hash` `(` $hash^ `)`)? (`rate` `=` $rate^)? (`step` `(` $step^ `)`)? attr-dict
    `:` }] # to # [{ (`,` type($mask)^)? }];
}

def AttentionOp : Mt_DroppingAttention<"attention",
    (ins Mt_AnyFloat:$query, Mt_AnyFloat:$key, Mt_AnyFloat:$value), "$query `,` $key `,` $value",
    "type($query) `,` type($key) `,` type($value)",
    [DeclareOpInterfaceMethods<GradientOpInterface>, DeclareOpInterfaceMethods<TrainingOpInterface>]> {
  let summary = "softmax(scale Q K^T) V of each head: mt.attention %q, %k, %v heads = 8 causal : "
                "tensor<?x128x256xf32>, "
                "tensor<?x128x256xf32>, tensor<?x128x256xf32>";
  let description = [{
    The result is [?, ..., T, H * V]. `scale` is 1 / sqrt(D) where it is not given. With `dropout "stream" rate = 0.1`
    and `step(%iteration)`, which `mt-differentiate` gives it in train_step, the probability of query t and key s counts
    0 where `mt.random_uniform "stream" step(%iteration) : tensor<?x...xHxTxSxf32>` is less than the rate at [..., h, t,
    s], and else 1 / (1 - rate) times itself; l is the sum before that. `mt-fuse` gives it `hash(%h)` in place of the
    stream, as it does to mt.random_uniform.

    The order of additions: a score is one FMA chain over the D channels of scale * q and k. Keys are taken in blocks of
    64, in order. A block's largest score and the largest one so far give the new largest m. What was added up is
    multiplied by e^(m before - m). Then the block's e^(score - m) are added to the sum l, one chain in the order of the
    keys, and their products with the values to the result, one FMA chain an element. The result is multiplied by 1 / l
    at the end. Blocks that are hidden from a query change nothing.
  }];
}
def AttentionLogSumsOp : Mt_Attention<"attention_log_sums",
    (ins Mt_AnyFloat:$query, Mt_AnyFloat:$key, Optional<Mt_Bool>:$mask), "$query `,` $key",
    "type($query) `,` type($key)", [Mt_StaysFloat32]> {
  let summary = "m + log(l) of each query of a mt.attention: [?, ..., H, T]; what its gradients need beside its result";
  let description = "0 for a query that sees no key. `mt-fuse` makes one kernel of this op and its mt.attention.";
}
def AttentionGradientOp : Mt_DroppingAttention<"attention_gradient",
    (ins Mt_AttentionOperandAttr:$of, Mt_AnyFloat:$gradient, Mt_AnyFloat:$query, Mt_AnyFloat:$key,
         Mt_AnyFloat:$value, Mt_AnyFloat:$output, Mt_Float:$log_sums),
    "`` $of `,` $gradient `,` $query `,` $key `,` $value `,` $output `,` $log_sums",
    [{type($gradient) `,` type($query) `,` type($key) `,` type($value) `,` type($output) `,` type($log_sums)}]> {
  let summary = "the gradient of mt.attention to its queries, keys or values";
  let description = [{
    `mt.attention_gradient key, %dy, %q, %k, %v, %y, %l heads = 8 causal : ...`, of the gradient of the result, the
    operands, the result and the log sums. P = e^(scale Q K^T - l) is computed again. With D = sum over a query's line
    of dY * Y, dS = P * (dY V^T - D):

        query  dQ = scale dS K      one FMA chain an element over the keys, then times scale
        key    dK = dS^T (scale Q)  one FMA chain an element over the heads that read the key, in each over the queries
        value  dV = P^T dY          the same

    `mt-fuse` makes one kernel of the gradients of one mt.attention.
  }];
}
#endif
