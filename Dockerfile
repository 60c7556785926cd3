# anabranch without a compiler: every command in virtual time, for a user without privileges.
#
#   docker build --tag anabranch .
#   docker run --rm --user "$(id -u)" --volume "$PWD:/work" anabranch reproduce nsdi12-fig7
#
# Both stages are of one Debian release, so the wheel finds the C library that it was linked with.

FROM rust:1-slim-trixie AS build
# The release is pinned, and its packages stay in this stage.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /venv
WORKDIR /anabranch
COPY . .
RUN /venv/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim-trixie
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --only-binary :all: /wheels/*.whl \
    && useradd --uid 1000 --create-home anabranch
# Whichever user runs it, matplotlib can write its cache.
ENV MPLCONFIGDIR=/tmp/matplotlib
USER 1000
WORKDIR /work
ENTRYPOINT ["anabranch"]
