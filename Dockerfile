# The service: docker build -t oversell .
# JMeter with the plans: docker build -t oversell-jmeter --target jmeter .
# The load balancer: docker build -t oversell-nginx --target nginx .

FROM golang:1.26-bookworm AS build
WORKDIR /src
# If proxy.golang.org cannot be reached: --build-arg GOPROXY=https://goproxy.cn,direct
ARG GOPROXY
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=docker
# The caches outlive the image: after an edit, only the changed packages are compiled.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -tags nomsgpack -trimpath -buildvcs=false \
    -ldflags "-s -w -X oversell/cli.version=${VERSION}" -o /oversell .

FROM maven:3.9-eclipse-temurin-17 AS jmeter
RUN useradd --uid 65532 --create-home lab
USER lab
WORKDIR /home/lab/jmeter
# Java looks for the home folder in the user database, which may lack docker-compose.yml's user.
ENV HOME=/home/lab MAVEN_OPTS=-Duser.home=/home/lab
# Without a plan this runs nothing, but downloads what a run needs. Runs are offline.
# The user is the owner of the results folder, so any user must be able to write these files.
COPY --chown=lab jmeter/pom.xml ./
RUN mvn -B -ntp verify && chmod -R a+rwX /home/lab
COPY --chown=lab jmeter/*.jmx ./
ENTRYPOINT ["mvn", "-o", "-B", "verify"]

# A mounted file would have the rights of the checkout: after umask 077, nginx's user could not read it.
FROM nginx:1.30-alpine AS nginx
COPY --chmod=644 nginx/nginx.conf /etc/nginx/nginx.conf

# The image has only the program: no shell, no password, no other user.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /oversell /oversell
USER 65532:65532
ENV ADDR=0.0.0.0:8000
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s CMD ["/oversell", "probe", "http://127.0.0.1:8000/healthz"]
ENTRYPOINT ["/oversell"]
CMD ["serve"]
