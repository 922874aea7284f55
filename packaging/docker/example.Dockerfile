# SPDX-License-Identifier: Apache-2.0
#
# A plan is compiled in the first stage, and shipped in the second, which has no compiler.
#   docker build -t digits -f packaging/docker/example.Dockerfile examples
#   docker run --rm digits
# Both images are built from this repository, so their tags say nothing of a version.
# hadolint ignore=DL3006
FROM mtc AS compile
COPY mnist_mlp.mlir /data/
RUN mtc compile mnist_mlp.mlir -o digits.mtp --batch 64

# hadolint ignore=DL3006
FROM mtrun
COPY --from=compile /data/digits.mtp /data/
COPY mnist /data/mnist/
CMD ["train", "digits.mtp", "--data", "mnist:mnist,split=test", "--epochs", "1", "--save", "w.safetensors"]
