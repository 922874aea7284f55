# SPDX-License-Identifier: Apache-2.0
#
# mtrun alone: trains plans. No compiler, no Python, no shell: libc and what mtrun needs.
#   packaging/deb/build && docker build -t mtrun -f packaging/docker/mtrun.Dockerfile build/deb/packages
#   docker run --rm -v "$PWD:/data" mtrun train model.mtp --data mnist:DIR --save w.safetensors
FROM debian:12-slim AS root
COPY libmtrun0_*.deb libmtrun-images0_*.deb libmtrun-cuda0_*.deb mtrun_*.deb /packages/
WORKDIR /packages
# The packages with all that they depend on, as in a system where nothing is installed: apt's status is empty.
RUN apt-get update && \
    apt-get install -y --no-install-recommends --download-only -o Dir::State::status=/dev/null \
      -o Dir::Cache::archives=/packages -o APT::Keep-Downloaded-Packages=true /packages/*.deb && \
    rm -rf /var/lib/apt/lists/*
# Of each its files, less manuals, translations of messages and character sets. Licenses stay.
RUN mkdir -p /image/etc /image/proc && \
    for package in /packages/*.deb; do dpkg-deb --extract "$package" /image; done && \
    rm -rf /image/usr/share/man /image/usr/share/locale /image/usr/share/lintian /image/usr/share/bash-completion \
      /image/usr/share/zsh /image/usr/lib/x86_64-linux-gnu/gconv && \
    find /image/usr/share/doc -type f ! -name copyright -delete && \
    echo 'mtc:x:1000:1000::/data:' > /image/etc/passwd && \
    install -d -o 1000 -g 1000 /image/data && install -d -m 1777 /image/tmp

FROM scratch
LABEL org.opencontainers.image.title="mtrun" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=root /image /
USER 1000
WORKDIR /data
ENTRYPOINT ["/usr/bin/mtrun"]
