# fakekafka serve in a container: brokers on 9092, 9093 and 9094, the control API on 8080.
# Options after the image's name go to `serve`: docs/guides/docker.md.
FROM python:3.12-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels "/source[control,fast,security]"

FROM python:3.12-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels "fakekafka[control,fast,security]"
RUN useradd --create-home --uid 10001 fakekafka && install -d -o fakekafka /home/fakekafka/data
USER fakekafka
WORKDIR /home/fakekafka
EXPOSE 9092-9094 8080
# Inside a container the port mapping of Docker decides who reaches a port. Options that are given
# again override these.
ENTRYPOINT ["fakekafka", "serve", "--host", "0.0.0.0", "--advertised-host", "localhost", \
    "--port", "9092", "--control-host", "0.0.0.0", "--control-port", "8080"]
HEALTHCHECK --interval=2s --timeout=2s --start-period=20s --retries=5 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/ready')"]
