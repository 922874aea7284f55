# SPDX-License-Identifier: Apache-2.0
#
# mtrun alone: trains plans. No compiler, no Python.
#   packaging/deb/build && docker build -t mtrun -f packaging/docker/mtrun.Dockerfile build/deb/packages
#   docker run --rm -v "$PWD:/data" mtrun train model.mtp --data mnist:DIR --save w.safetensors
FROM debian:12-slim
LABEL org.opencontainers.image.title="mtrun" org.opencontainers.image.licenses="Apache-2.0"
COPY libmtrun0_*.deb libmtrun-images0_*.deb libmtrun-cuda0_*.deb mtrun_*.deb /packages/
RUN apt-get update && apt-get install -y --no-install-recommends /packages/*.deb && \
    rm -rf /packages /var/lib/apt/lists/*
RUN useradd --uid 1000 --create-home --home-dir /data mtc
USER mtc
WORKDIR /data
ENTRYPOINT ["mtrun"]
