# The gateway in a container. docs/guides/many-machines.md says how to run it.
#
#   docker build -t junctor .
#   docker run -p 127.0.0.1:7780:7780 -e ADA_KEY -v ./mcp.json:/etc/junctor/mcp.json:ro junctor

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /src
COPY . .
# Installs the pinned development dependencies, checks the types and writes the dist/ of each package.
RUN npm run build
# What the packages need, from the lock file; then the client of the engine, in the version that the tests use.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
 && npm install --no-save --omit=dev --ignore-scripts --no-audit --no-fund @redis/client@6.3.1 \
 && rm -rf packages/page packages/*/src

FROM node:24.21.0-bookworm-slim
# The first process: it passes signals on, and collects what the servers on stdio leave behind.
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /src/node_modules ./node_modules
COPY --from=build /src/packages ./packages
ENV NODE_ENV=production
# The user `node` of the image, by number so that Kubernetes sees that it is not root.
USER 1000:1000
EXPOSE 7780 7790
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:7780/live').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "node", "/app/packages/junctor/dist/cli/main.js"]
CMD ["serve", "--config", "/etc/junctor/mcp.json", "--host", "0.0.0.0", "--port", "7780"]
