# The scheduler and what it needs to run, in a user's name: docker build -t kubenexus:0.1.0 .
# For two architectures, with the list of its packages and its provenance: docker buildx bake (docker-bake.hcl).
# docs/image.md has the sizes, and how to pin the base image by its digest.

ARG PYTHON=python:3.13-slim-trixie

FROM ${PYTHON} AS build
WORKDIR /src
COPY constraints.txt ./
# What builds the wheel is pinned, too, and stays behind in this stage. The scheduler makes its certificate with openssl,
# which comes with the base image: a base without it fails here.
RUN openssl version && pip install --no-cache-dir -c constraints.txt hatchling editables
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && python -m venv --without-pip /opt/kubenexus \
 && pip --python /opt/kubenexus/bin/python install --no-cache-dir -c constraints.txt \
        "$(echo /wheels/kubenexus-*.whl)[fast]"
COPY scripts ./scripts
# The tests and stubs of other packages are a sixth of all bytes, and nothing here imports them.
RUN python scripts/trim.py /opt/kubenexus \
 && python scripts/sbom.py /opt/kubenexus > /opt/kubenexus/sbom.cdx.json

FROM ${PYTHON}
COPY --from=build /opt/kubenexus /opt/kubenexus
# Modules were compiled when they were installed, and the file system is read-only where it runs.
ENV PATH=/opt/kubenexus/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 10259 10260
ENTRYPOINT ["kubenexus"]
CMD ["run"]
