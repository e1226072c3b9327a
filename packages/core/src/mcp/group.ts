/** Groups: the draft extension `io.modelcontextprotocol/groups` of 2026-09-28. */
import type { Meta } from "./types.ts";

/** A bundle of tools, prompts, resources and further groups that a client fetches when it needs them. */
export interface Group {
  /** 1 to 64 lower-case letters, digits and single hyphens between them. */
  readonly name: string;
  readonly title?: string;
  /** When to use it, for the model. */
  readonly description: string;
  /** How to use what is in it, for the model, as Markdown. Lists on the wire leave it out. */
  readonly instructions?: string;
  /** What is in it, by name; a resource by its URI. Lists on the wire leave it out. */
  readonly contents?: GroupContents;
  readonly _meta?: Meta;
}

/** The lists whose items can be in a group. */
export type GroupedPart = "tools" | "prompts" | "resources" | "groups";

export type GroupContents = { readonly [P in GroupedPart]?: readonly string[] };

const groupName = /^(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$/;

/** Whether a text can name a group. */
export function isGroupName(name: string): boolean {
  return groupName.test(name);
}
