import {
  BrandedError,
  ClosedError,
  ConfigError,
  ConnectError,
  type FailureCode,
  failureCodeOf,
  HttpError,
  loadErrorEntries,
  RpcError,
  systemCodeOf,
  TimeoutError,
  ValidationError,
} from "@junctor/core/errors";
import { describeIssues } from "@junctor/core/schema";
import { junctor } from "../../invocation/index.ts";
import { isTelling } from "../../servers/index.ts";
import { Interrupt } from "./interrupt.ts";
import { toSafeText } from "./print.ts";
import {
  adviseOnWords,
  findVariable,
  isAboutCredentials,
  nearestProgram,
  ServerTrouble,
} from "./server-trouble.ts";

/** What a command that failed says, and with what code it ends. */
export interface Complaint {
  readonly text: string;
  readonly exitCode: number;
}

/** What went wrong and what to do, in the words of the command line; a stack only for what we did not foresee. */
export async function toComplaint(error: unknown): Promise<Complaint> {
  // A terminal shows "^C" and stays on that line.
  if (error instanceof Interrupt) return { text: process.stderr.isTTY ? "\n" : "", exitCode: error.exitCode };
  return { text: `junctor: ${toSafeText(describe(error))}\n`, exitCode: await exitCodeOf(error) };
}

/** The exit code in the table of errors. */
async function exitCodeOf(error: unknown): Promise<number> {
  if (!(error instanceof BrandedError)) return 3;
  return (await loadErrorEntries()).find(({ code }) => code === error.code)?.exit ?? 3;
}

function isAboutArguments(error: unknown): error is ValidationError {
  return error instanceof ValidationError && error.subject === "arguments";
}

function describe(error: unknown): string {
  if (error instanceof ConfigError) return describeConfig(error);
  if (error instanceof ServerTrouble) return error.message;
  if (error instanceof TimeoutError) return describeTimeout(error);
  if (error instanceof HttpError) return describeStatus(error);
  if (isAboutArguments(error)) return describeArguments(error);
  // Number 0 means that no valid answer came.
  if (error instanceof RpcError && error.rpcCode !== 0)
    return `the server refused: ${error.message} (${error.rpcCode})`;
  if (error instanceof ConnectError || error instanceof ClosedError) return describeLoss(error);
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined ? (error.stack ?? error.message) : error.message;
}

/** One mistake on the first line, several under it. */
function describeConfig({ issues, message }: ConfigError): string {
  return issues.length === 1 ? message : `${issues.length} mistakes\n${message.replaceAll(/^/gm, "  ")}`;
}

/** What went wrong on the way to a server, and what to write instead. What a child wrote comes last. */
function describeLoss(error: ConnectError | ClosedError): string {
  const [first = "", ...rest] = error.message.split("\n");
  const advice = adviseOnLoss(error);
  const head = advice === undefined ? first : `${first.replace(/\.$/, "")}; ${advice}`;
  return [head, ...rest.filter(isTelling)].join("\n");
}

function adviseOnLoss(error: ConnectError | ClosedError): string | undefined {
  if (error instanceof ConnectError && error.stray !== "") return strayAdvice;
  const code = failureCodeOf(error);
  if (code === "no_program") return adviseOnProgram(error.message);
  if (code === "exited") return error instanceof ConnectError ? adviseOnEnd(error) : undefined;
  // Why a server that was up went away, only its own output can tell.
  if (code === "lost") return isFirstContact(error) ? "if it wants TLS, write https://" : undefined;
  return lossAdvice[code];
}

const lossAdvice: { readonly [Code in FailureCode]?: string } = {
  refused: `start the server (${junctor("serve")} starts a gateway), or name another with --server URL or -- COMMAND`,
  no_host: "there is no such host, check the URL",
  unreachable: "check the URL, and a VPN or firewall on the way",
  certificate: "if you trust it, NODE_EXTRA_CA_CERTS=FILE names a file with its certificate",
  no_tls: "it may speak plain HTTP: write http://, or correct the port",
  not_executable: "chmod +x makes a file executable",
  no_answer: "--timeout SECONDS waits longer",
};

const strayAdvice =
  "this program writes other text to its standard output: it must write only MCP messages there";

/** Finds the program in the message of the error. */
function adviseOnProgram(message: string): string {
  const [, program = ""] = /there is no program "([^"]*)"/.exec(message) ?? [];
  if (program.includes(" "))
    return `write the program and its arguments as words of their own: -- ${program}`;
  const meant = nearestProgram(program);
  return meant === undefined ? "install it, or write its whole path" : `did you mean ${meant}?`;
}

function adviseOnEnd({ stderr }: ConnectError): string {
  const advised = adviseOnWords(stderr);
  if (advised !== undefined) return advised;
  const variable = findVariable(stderr, {});
  if (variable !== undefined) return `a variable that it misses is passed on with --env ${variable}`;
  return isAboutCredentials(stderr)
    ? "get it new credentials; a variable is passed on with --env NAME"
    : "run it by hand to see why it ends";
}

/** A plain HTTP request that the other side hung up on, as TLS servers do. */
function isFirstContact({ message, cause }: Error): boolean {
  return message.includes("http://") && systemCodeOf(cause) === "UND_ERR_SOCKET";
}

function describeArguments({ tool, issues }: ValidationError): string {
  return describeIssues(
    issues.map(({ path, message }) => ({ path: toArgumentName(path), message })),
    tool,
  );
}

/** A JSON pointer as a person who typed `key=value` would write it: `/tags/0` is `tags[0]`. */
function toArgumentName(pointer: string): string {
  const [, key, ...keys] = pointer.split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (key === undefined) return "the arguments";
  const rest = keys.map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`));
  return `${key === "" ? '""' : key}${rest.join("")}`;
}

function describeTimeout({ kind, timeoutMs }: TimeoutError): string {
  const limit = `${timeoutMs / 1000} s`;
  const what = kind === "idle" ? `nothing came for ${limit}` : `it was not done after ${limit}`;
  return `${what}, so it was cancelled; --timeout SECONDS waits longer`;
}

function describeStatus(error: HttpError): string {
  const { status, url, message } = error;
  if (status === 401) return `${url} wants authentication: --header "Authorization: Bearer KEY"`;
  if (status === 403) return `${message}; credentials go in --header "Authorization: Bearer KEY"`;
  if (status === 429) return `${url} has had too many requests (429); try again later`;
  if (status >= 500) return `${message}; that is a fault of the server: see its log, or try again later`;
  if (status >= 300 && status < 400)
    return `${url} redirects (${status}), which is not followed because headers may hold keys; use the address it leads to`;
  if (failureCodeOf(error) === "no_endpoint") return `${message}; most end in /mcp or /sse`;
  return message;
}

/** Where something listens, and what to write to have it listen elsewhere. */
interface Place {
  readonly host: string;
  readonly port: number;
  readonly portSetting: string;
  readonly hostSetting: string;
}

/** Waits for a listener. When it cannot have its port or address, the error says how to choose another. */
export async function withAdvice<T>(place: Place, listening: Promise<T>): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    const describe = troubles[(error as NodeJS.ErrnoException).code ?? ""];
    if (describe === undefined) throw error;
    throw new PortError(describe(place), error);
  }
}

const noAddress = ({ host, hostSetting }: Place): string =>
  `cannot listen on ${host}: it is not an address of this machine; ${hostSetting} serves this machine alone`;

const troubles: { readonly [code: string]: (place: Place) => string } = {
  EADDRINUSE: ({ host, port, portSetting }) =>
    `port ${port} of ${host} is taken (EADDRINUSE), and ${junctor("status")} shows whether by a gateway of yours; choose another port with ${portSetting}`,
  EACCES: ({ port, portSetting }) =>
    `this user may not listen on port ${port} (EACCES), as ports below 1024 need more rights; choose another port with ${portSetting}`,
  EADDRNOTAVAIL: noAddress,
  ENOTFOUND: noAddress,
};

/** A port or address cannot be listened on. */
class PortError extends BrandedError {
  protected static override readonly brand = "PortError";

  override readonly name = "PortError";
  readonly code = "cli.port";

  constructor(message: string, cause: unknown) {
    super(message, { cause });
  }
}
