import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProgram, until } from "./program.ts";

/** A haproxy that gives each request to the next replica, whoever sent it. */
export interface Balancer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
}

/** Starts it in front of replicas at these ports, and resolves when it serves. */
export async function startBalancer(
  port: number,
  replicas: readonly number[],
  folder: string,
): Promise<Balancer> {
  const file = join(folder, "haproxy.cfg");
  writeFileSync(file, toConfig(port, replicas));
  const program = startProgram("haproxy", ["-db", "-f", file]);
  const url = `http://127.0.0.1:${port}`;
  const isUp = (): Promise<boolean> =>
    fetch(`${url}/live`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until("the balancer serves", isUp, program);
  return { port, url, [Symbol.asyncDispose]: () => program.end() };
}

/**
 * Nothing is sent twice: a request goes to another replica only when no connection could be made. A replica that is not ready, or
 * does not answer the check, gets no new requests. A client that hangs up is hung up on: so modern clients cancel.
 */
function toConfig(port: number, replicas: readonly number[]): string {
  const servers = replicas.map(
    (replica, index) => `  server r${index} 127.0.0.1:${replica} check inter 200ms fall 2 rise 1`,
  );
  return `
global
  maxconn 4000
defaults
  mode http
  balance roundrobin
  option http-server-close
  option abortonclose
  option redispatch 1
  retries 3
  timeout connect 2s
  timeout client 15m
  timeout server 15m
  timeout check 1s
frontend in
  bind 127.0.0.1:${port}
  default_backend replicas
backend replicas
  option httpchk
  http-check send meth GET uri /ready ver HTTP/1.1 hdr Host 127.0.0.1:${port}
  http-check expect status 200
${servers.join("\n")}
`;
}
