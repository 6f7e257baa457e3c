# The Dewpoint image: one static binary, CA certificates, the licences of the binary and its modules, and a folder for its store. It runs as
# user 65532 with a read-only root filesystem and writes only to /var/lib/dewpoint.
#
#   docker build -t dewpoint .                                        for this machine's platform
#   docker buildx build --platform linux/amd64,linux/arm64 .          for several: cross-compiled by Go, without emulation
#
# GO_IMAGE       has the Go toolchain, CA certificates and a shell; pin its digest for reproducible builds
# RUNTIME_IMAGE  base of the final image: scratch, or one of the distroless static images
# GOPROXY, GOFLAGS, GOSUMDB, GONOSUMDB   as in Go; unset: Go's defaults
# VERSION, REVISION, CREATED   for 'dewpoint version' and the labels
# SOURCE_DATE_EPOCH   timestamp of files; the same source gives the same image
ARG GO_IMAGE=golang:1.26
ARG RUNTIME_IMAGE=scratch

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG GOPROXY
ARG GOFLAGS
ARG GOSUMDB
ARG GONOSUMDB
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG TARGETVARIANT
ARG VERSION=dev
ARG REVISION=""
ARG SOURCE_DATE_EPOCH=0
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} GOARM=${TARGETVARIANT#v} \
      go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X github.com/dewpoint-proxy/dewpoint/internal/command.version=${VERSION} -X github.com/dewpoint-proxy/dewpoint/internal/command.revision=${REVISION}" -o /image/dewpoint ./cmd/dewpoint \
 && mkdir -p /image/etc/ssl/certs /image/var/lib/dewpoint \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && sh scripts/licences.sh /image/licences ./cmd/dewpoint \
 && chmod 0555 /image/dewpoint && chmod 0444 /image/etc/ssl/certs/ca-certificates.crt && chmod 0700 /image/var/lib/dewpoint \
 && find /image -exec touch -d "@${SOURCE_DATE_EPOCH}" {} +

FROM ${RUNTIME_IMAGE}
ARG VERSION=dev
ARG REVISION=""
ARG CREATED=""
LABEL org.opencontainers.image.title="Dewpoint" \
      org.opencontainers.image.description="An OpenAI-compatible reverse proxy that condenses long agent histories" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/dewpoint-proxy/dewpoint" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
COPY --from=build /image/etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /image/licences /licences
COPY --from=build /image/dewpoint /dewpoint
COPY --from=build --chown=65532:65532 /image/var/lib/dewpoint /var/lib/dewpoint
ENV DEWPOINT_LISTEN=0.0.0.0:8080 \
    DEWPOINT_STORE_PATH=/var/lib/dewpoint/dewpoint.db
USER 65532:65532
WORKDIR /var/lib/dewpoint
VOLUME ["/var/lib/dewpoint"]
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/dewpoint", "health"]
ENTRYPOINT ["/dewpoint"]
