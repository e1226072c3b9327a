import { NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import type { CallContext, OldProvider, ResourceProvider } from "@junctor/core/provider";
import { resultScheme } from "./cut.ts";

/** The replicas of one gateway, each of which keeps the results that it cut. */
export interface ResultsElsewhere {
  /** The id of this replica: 12 hexadecimal digits. Ids of results that it keeps begin with it. */
  readonly here: string;
  /** Reads results of a profile at another replica; undefined when that replica is gone. */
  readonly readerAt: (address: string, profile: string | undefined) => Promise<OldProvider | undefined>;
  /** Registers the reader of this replica's results of a profile, for the other replicas. */
  readonly serve: (profile: string | undefined, reader: OldProvider) => void;
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
  reader: OldProvider & { readonly resources: ResourceProvider },
  { here, readerAt }: ResultsElsewhere,
  profile: string | undefined,
): OldProvider {
  const isElsewhere = (id: unknown): id is string => {
    const address = addressOf(id);
    return address !== undefined && address !== here;
  };
  const readBy = async <T>(
    id: string,
    { signal }: CallContext,
    read: (other: OldProvider) => T | Promise<T> | undefined,
  ): Promise<T | undefined> => {
    try {
      const other = await readerAt(addressOf(id) ?? "", profile);
      return other && (await read(other));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RpcError) throw error;
      throw new ToolError("The replica that keeps this result cannot be reached now. Try again.");
    }
  };
  return {
    ...reader,
    callTool: async (call, context) => {
      const { id } = (call.arguments.value ?? {}) as { readonly id?: unknown };
      if (!isElsewhere(id)) return reader.callTool(call, context);
      return (
        (await readBy(id, context, (other) => other.callTool(call, context))) ?? Promise.reject(goneResult())
      );
    },
    resources: {
      ...reader.resources,
      readResource: async (request, context) => {
        const { uri } = request;
        const id = uri.slice(resultScheme.length);
        if (!isElsewhere(id)) return reader.resources.readResource(request, context);
        const read = await readBy(id, context, ({ resources }) => resources?.readResource(request, context));
        return read ?? Promise.reject(new NotFoundError("resource", uri));
      },
    },
  };
}

export function goneResult(): ToolError {
  return new ToolError("No such result is kept: it is too long ago, or not yours. Call the tool again.");
}

function addressOf(id: unknown): string | undefined {
  return typeof id === "string" ? /^([0-9a-f]{12})\./.exec(id)?.[1] : undefined;
}
