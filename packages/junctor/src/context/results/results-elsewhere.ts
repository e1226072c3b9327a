import { NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import { type CallContext, type Operation, type Outcome, type Provider } from "@junctor/core/provider";
import { resultScheme } from "./cut.ts";

/** The replicas of one gateway, each of which keeps the results that it cut. */
export interface ResultsElsewhere {
  /** The id of this replica: 12 hexadecimal digits. Ids of results that it keeps begin with it. */
  readonly here: string;
  /** Reads results of a profile at another replica; undefined when that replica is gone. */
  readonly readerAt: (address: string, profile: string | undefined) => Promise<Provider | undefined>;
  /** Registers the reader of this replica's results of a profile, for the other replicas. */
  readonly serve: (profile: string | undefined, reader: Provider) => void;
}

/** The id of a result that this replica keeps, as callers know it. */
export function toResultId(own: string, elsewhere: ResultsElsewhere | undefined): string {
  return elsewhere === undefined ? own : `${elsewhere.here}.${own}`;
}

/** The reverse of {@link toResultId}. An id of another replica stays as it is. */
export function toOwnId(id: string, elsewhere: ResultsElsewhere | undefined): string {
  return elsewhere !== undefined && id.startsWith(`${elsewhere.here}.`)
    ? id.slice(elsewhere.here.length + 1)
    : id;
}

/** The name under which a replica offers the results of a profile to the others. */
export function resultsName(profile: string | undefined): string {
  return `${resultScheme}${profile ?? ""}`;
}

/** The profile of such a name: undefined where it is of none, false for any other name. */
export function profileOfResults(name: string): string | undefined | false {
  if (!name.startsWith(resultScheme)) return false;
  return name === resultScheme ? undefined : name.slice(resultScheme.length);
}

/** A reader that also reads results that other replicas keep, by passing the request to them. */
export function withElsewhere(
  reader: Provider,
  { here, readerAt }: ResultsElsewhere,
  profile: string | undefined,
): Provider {
  const readAt = async (
    address: string,
    operation: Operation,
    context: CallContext,
  ): Promise<Outcome | undefined> => {
    try {
      const other = await readerAt(address, profile);
      return other && (await other.call(operation, context));
    } catch (error) {
      context.signal.throwIfAborted();
      if (error instanceof RpcError) throw error;
      throw new ToolError("The replica that keeps this result cannot be reached now. Try again.");
    }
  };
  return {
    ...reader,
    call: (operation, context) => {
      const { part, name, arguments: args } = operation;
      const isResource = part === "resources";
      const address = addressOf(isResource ? name.slice(resultScheme.length) : args.at("id")?.value);
      if (address === undefined || address === here) return reader.call(operation, context);
      return readAt(address, operation, context).then((outcome) => {
        if (outcome !== undefined) return outcome;
        throw isResource ? new NotFoundError("resource", name) : goneResult();
      });
    },
  };
}

export function goneResult(): ToolError {
  return new ToolError("No such result is kept: it is too long ago, or not yours. Call the tool again.");
}

function addressOf(id: unknown): string | undefined {
  return typeof id === "string" ? /^([0-9a-f]{12})\./.exec(id)?.[1] : undefined;
}
