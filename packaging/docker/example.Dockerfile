# SPDX-License-Identifier: Apache-2.0
#
# A plan is compiled in the first stage, and shipped in the second, which has no compiler.
#   docker build -t digits -f packaging/docker/example.Dockerfile examples
#   docker run --rm digits
FROM mtc AS compile
COPY mnist_mlp.mlir /work/
RUN mtc compile mnist_mlp.mlir -o digits.mtp --batch 64

FROM mtrun
COPY --from=compile /work/digits.mtp /work/
COPY mnist /work/mnist/
CMD ["train", "digits.mtp", "--data", "mnist:mnist,split=test", "--epochs", "1", "--save", "w.safetensors"]
