# SPDX-License-Identifier: Apache-2.0
#
# mtc and mtrun: compiles models, and trains their plans.
#   packaging/deb/build && docker build -t mtc -f packaging/docker/mtc.Dockerfile build/deb/packages
#   docker run --rm -v "$PWD:/data" mtc compile model.keras -o model.mtp --batch 64
FROM debian:12-slim
LABEL org.opencontainers.image.title="mtc" org.opencontainers.image.licenses="Apache-2.0"
COPY libmtrun0_*.deb libmtrun-images0_*.deb mtrun_*.deb libmtc0_*.deb mtc_*.deb /packages/
RUN apt-get update && apt-get install -y --no-install-recommends /packages/*.deb && \
    rm -rf /packages /var/lib/apt/lists/*
RUN useradd --uid 1000 --create-home --home-dir /data mtc
USER 1000
WORKDIR /data
ENTRYPOINT ["mtc"]
