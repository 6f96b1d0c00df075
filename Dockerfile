# One image for amd64 and arm64; the command chooses the role:
#
#   docker run … flightchain                             fill an empty chain, serve, mine, show pages
#   docker run … flightchain backend serve --only-http   answer over HTTP
#   docker run … flightchain frontend                    pages for a browser
#   docker run … flightchain backend mine                seal blocks
#   docker run … flightchain backend import FILE         and all other commands
#
# The chain is in the volume /var/lib/flightchain. scripts/deploy/compose.yaml runs the roles apart.
# scripts/refresh renews the hashes of the packages; its help says where digests come from.

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
WORKDIR /opt/flightchain
COPY requirements.txt ./
COPY frontend/requirements.txt frontend.txt
RUN python -m venv --without-pip venv \
 && pip --python venv/bin/python install --no-cache-dir --require-hashes \
      --requirement requirements.txt --requirement frontend.txt
# `--build-arg NYCFLIGHTS=0` leaves out the 14 MB of FLIGHTCHAIN_DATA=nycflights.
ARG NYCFLIGHTS=1
COPY backend/sources/requirements.txt nycflights.txt
RUN if [ "$NYCFLIGHTS" = 1 ]; then \
      pip --python venv/bin/python install --no-cache-dir --require-hashes --no-deps --requirement nycflights.txt; \
    fi
COPY . .
ARG COMMIT=unknown
RUN echo "$COMMIT" >COMMIT
RUN python -m compileall -q backend frontend loadtests

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
RUN groupadd --gid 10001 flightchain \
 && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin flightchain \
 && install --directory --owner=10001 --group=10001 /var/lib/flightchain
COPY --from=build /opt/flightchain /opt/flightchain
WORKDIR /opt/flightchain
ENV PATH=/opt/flightchain/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    FLIGHTCHAIN_DIR=/var/lib/flightchain \
    FLIGHTCHAIN_DATA=none \
    FLIGHTCHAIN_HOST=0.0.0.0 \
    FLIGHTCHAIN_FRONTEND_HOST=0.0.0.0
USER 10001:10001
VOLUME /var/lib/flightchain
EXPOSE 5000 8000
# Not urlopen: that would ask a proxy which the environment names.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5m CMD ["python", "-c", "\
import http.client, os, sys; \
service = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('FLIGHTCHAIN_PORT', 8000)), timeout=4); \
service.request('GET', '/health/live'); \
sys.exit(service.getresponse().status != 200)"]
ENTRYPOINT ["python", "-m"]
CMD ["backend", "import", "--if-empty", "--then-serve", "--frontend"]
