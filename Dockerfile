# The scheduler and what it needs to run, in a user's name: docker build -t kubenexus:0.1.0 .

FROM python:3.13-slim AS build
WORKDIR /src
COPY constraints.txt ./
# What builds the wheel is pinned, too, and stays behind in this stage.
RUN pip install --no-cache-dir -c constraints.txt hatchling editables
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && python -m venv --without-pip /opt/kubenexus \
 && pip --python /opt/kubenexus/bin/python install --no-cache-dir -c constraints.txt \
        "$(echo /wheels/kubenexus-*.whl)[fast]"

FROM python:3.13-slim
COPY --from=build /opt/kubenexus /opt/kubenexus
# Modules were compiled when they were installed, and the file system is read-only where it runs.
ENV PATH=/opt/kubenexus/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 10259 10260
ENTRYPOINT ["kubenexus"]
CMD ["run"]
