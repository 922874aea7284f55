// SPDX-License-Identifier: Apache-2.0
//
// Attention: softmax(scale Q K^T) V for each head, as one op, so that no kernel has to store the scores.
//
// Queries are [?, ..., T, H * D], keys [?, ..., S, G * D], values [?, ..., S, G * V]: the last axis holds all heads of
// a position, as a dense layer computes them. T and S are numbers of positions. H = `heads`. G = `key_heads` (default
// H) divides H, and head h reads the keys and values of head h / (H / G), so that grouped-query and multi-query
// attention are special cases. Any axes `...` are equal in all operands. The formulas below are for one sample, one
// index of these axes and one head.
//
// Query t attends to key s unless one of these attributes hides the key:
//   causal       s > t
//   window = w   |t - s| >= w
//   mask         false at [..., h, t, s]. Its type broadcasts to [?, ..., H, T, S]: [?, 1, 1, S] is a padding mask. The
//                axes between batch and heads are all of size 1, all missing or all as in the queries
// The result of a query that attends to no key is 0, without a gradient.
#ifndef MT_ATTENTION_TD
#define MT_ATTENTION_TD

include "dialects/mt/MtBase.td"

class Mt_Attention<string mnemonic, dag operands, string from, string to, list<Trait> traits = []>
    : Mt_PureOp<mnemonic, !listconcat([Mt_Rounds, Mt_Contraction, Mt_SameFloats, Mt_OwnKernel<>, Mt_InferType],
                                      traits)> {
  let arguments = !con(operands, (ins DefaultValuedAttr<I64Attr, "1">:$heads, OptionalAttr<I64Attr>:$key_heads,
                                  UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<Mt_Real>:$scale));
  let results = (outs Mt_AnyFloat:$result);
  let assemblyFormat = from # [{ (`mask` $mask^)? (`heads` `=` $heads^)? (`key_heads` `=` $key_heads^)?
    (`causal` $causal^)? (`window` `=` $window^)? (`scale` `=` custom<Real>($scale)^)? attr-dict
    `:` }] # to # [{ (`,` type($mask)^)? }];
}
class Mt_DroppingAttention<string mnemonic, dag operands, string from, string to, list<Trait> traits = []>
    : Mt_Attention<mnemonic, operands, from, to, !listconcat([AttrSizedOperandSegments], traits)> {
  let arguments = !con(operands, (ins Optional<Mt_Bool>:$mask, Optional<Mt_Step>:$hash,
                                  Optional<Mt_Step>:$step,
                                  DefaultValuedAttr<I64Attr, "1">:$heads, OptionalAttr<I64Attr>:$key_heads,
                                  UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<Mt_Real>:$scale,
                                  OptionalAttr<StrAttr>:$stream, OptionalAttr<Mt_Real>:$rate));
  let assemblyFormat = from # [{ (`mask` $mask^)? (`heads` `=` $heads^)? (`key_heads` `=` $key_heads^)?
    (`causal` $causal^)? (`window` `=` $window^)? (`scale` `=` custom<Real>($scale)^)? (`dropout` $stream^)?
    (`hash` `(` $hash^ `)`)? (`rate` `=` custom<Real>($rate)^)? (`step` `(` $step^ `)`)? attr-dict
    `:` }] # to # [{ (`,` type($mask)^)? }];
}

def AttentionOp : Mt_DroppingAttention<"attention",
    (ins Mt_AnyFloat:$query, Mt_AnyFloat:$key, Mt_AnyFloat:$value), "$query `,` $key `,` $value",
    "type($query) `,` type($key) `,` type($value)",
    [DeclareOpInterfaceMethods<GradientOpInterface>, DeclareOpInterfaceMethods<TrainingOpInterface>]> {
  let summary = "softmax(scale Q K^T) V of each head";
  let description = [{
    `mt.attention %q, %k, %v heads = 8 causal : tensor<?x128x256xf32>, tensor<?x128x256xf32>, tensor<?x128x256xf32>`

    query [?, ..., T, H * D], key [?, ..., S, G * D], value [?, ..., S, G * V] -> [?, ..., T, H * V], for T queries, S
    keys, H = `heads` and G = `key_heads` (Vaswani et al. 2017). `scale` defaults to 1 / sqrt(D).

    Dropout acts on the probabilities: `dropout "stream" rate = 0.1`. In train_step `mt-differentiate` adds the operand
    `step(%iteration)`. The probability of query t and key s is then 0 if `mt.random_uniform "stream" step(%iteration) :
    tensor<?x...xHxTxSxf32>` is less than the rate at [..., h, t, s]. Otherwise it is divided by 1 - rate. The sum l
    below is taken before dropout. `mt-fuse` replaces the stream's name by an operand `hash(%h)`, as in
    mt.random_uniform.

    Order of additions, which fixes the bits: a score is one FMA chain over the D channels of scale * q and k. Keys are
    processed in blocks of 64, in order (online softmax, Milakov and Gimelshein 2018). For each block, m becomes the
    maximum of the scores so far, and both sums so far are multiplied by e^(old m - new m). Then e^(score - m) of each
    key is added to the sum l, in one chain in the order of the keys, and e^(score - m) times the value is added to the
    result, in one FMA chain per element. At the end the result is multiplied by 1 / l. Blocks of which a query sees no
    key change nothing.

    Errors: sizes of heads that do not divide the last axes, or operands whose other axes differ.
  }];
}
def AttentionLogSumsOp : Mt_Attention<"attention_log_sums",
    (ins Mt_AnyFloat:$query, Mt_AnyFloat:$key, Optional<Mt_Bool>:$mask), "$query `,` $key",
    "type($query) `,` type($key)", [Mt_StaysFloat32]> {
  let summary = "logarithm of the softmax's denominator of each query: m + log(l)";
  let description = [{
    The result is [?, ..., H, T], always f32; mt.attention defines m and l. The element is 0 for a query that attends
    to no key. The backward pass recomputes the probabilities from it. `mt-fuse` puts this op and its mt.attention into
    one kernel.
  }];
}
def AttentionGradientOp : Mt_DroppingAttention<"attention_gradient",
    (ins Mt_AttentionOperandAttr:$of, Mt_AnyFloat:$gradient, Mt_AnyFloat:$query, Mt_AnyFloat:$key,
         Mt_AnyFloat:$value, Mt_AnyFloat:$output, Mt_Float:$log_sums),
    "`` $of `,` $gradient `,` $query `,` $key `,` $value `,` $output `,` $log_sums",
    [{type($gradient) `,` type($query) `,` type($key) `,` type($value) `,` type($output) `,` type($log_sums)}],
    [DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "gradient of mt.attention with respect to its queries, keys or values";
  let description = [{
    `mt.attention_gradient key, %dy, %q, %k, %v, %y, %l heads = 8 causal : ...`

    %dy is the gradient of the result %y of an mt.attention of %q, %k and %v; %l is its mt.attention_log_sums. The
    result has the type of the operand that `of` names. The op recomputes P = e^(scale Q K^T - l). With
    D = sum of dY * Y over the channels of each query, and dS = P * (dY V^T - D) (Dao et al. 2022, appendix B):

        query  dQ = scale dS K      one FMA chain per element, over the keys; then times scale
        key    dK = dS^T (scale Q)  one FMA chain per element, over the heads that read the key, then over the queries
        value  dV = P^T dY          as for key

    `mt-fuse` puts all gradients of one mt.attention into one kernel. The gradient of this op is made of products and a
    softmax, which store the scores.
  }];
}
#endif
