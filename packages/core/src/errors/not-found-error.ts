import { brandErrors } from "./branded.ts";

/** What a provider was asked for and does not have. */
export type Missing = "tool" | "prompt" | "resource" | "task" | "skill" | "directory";

/**
 * A provider does not have the thing that a request names. It crosses the wire with the code that the caller's
 * revision and the server's dialect want for it.
 */
export class NotFoundError extends Error {
  static {
    brandErrors(
      this,
      ({ what, id }) => what !== undefined && Object.hasOwn(labels, what) && typeof id === "string",
    );
  }

  override readonly name = "NotFoundError";
  readonly code = "provider.not_found";
  readonly what: Missing;
  /** The tool's or prompt's name, the URI of a resource, skill or directory, or the provider's name for the task. */
  readonly id: string;

  constructor(what: Missing, id: string) {
    super(`${labels[what]} not found: ${id}`);
    this.what = what;
    this.id = id;
  }
}

const labels: Readonly<Record<Missing, string>> = {
  tool: "Tool",
  prompt: "Prompt",
  resource: "Resource",
  task: "Task",
  skill: "Skill",
  directory: "Directory",
};
