import { isLogLevel, logLevels } from "@junctor/core/mcp";
import { nearest } from "@junctor/core/options";
import { isContent } from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";

/** What one member of an event must be. */
interface EventMember {
  readonly is: (value: unknown) => boolean;
  /** The end of the sentence "it must be …". */
  readonly expected: string;
  readonly isOptional?: boolean;
}

type EventMembers = { readonly [name: string]: EventMember };

const isString = (value: unknown): boolean => typeof value === "string";
const aString: EventMember = { is: isString, expected: "a string" };
const aNumber: EventMember = { is: Number.isFinite, expected: "a number" };
const optional = (member: EventMember): EventMember => ({ ...member, isOptional: true });

/** The members of each type of event, besides `type`. */
const eventMembers: { readonly [type: string]: EventMembers } = {
  content: {
    content: {
      is: (value) => isString(value) || isContent(value),
      expected: 'a string or a content block such as { type: "text", text: "…" }',
    },
  },
  toolUse: { name: aString },
  progress: { progress: aNumber, total: optional(aNumber), message: optional(aString) },
  log: {
    level: { is: isLogLevel, expected: `one of ${logLevels.join(", ")}` },
    data: { is: () => true, expected: "a value that has JSON" },
    logger: optional(aString),
  },
  error: { message: aString },
  complete: {},
};

const eventTypes = Object.keys(eventMembers);

/** Throws a `TypeError` for something that was yielded and is no event, with what to yield instead. */
export function assertEvent(event: unknown): void {
  const type = typeof event === "object" && event !== null && "type" in event ? event.type : undefined;
  const known = typeof type === "string" && Object.hasOwn(eventMembers, type);
  const members = known ? eventMembers[type] : undefined;
  if (members === undefined) throw new TypeError(describeNoEvent(event, type));
  const mistake = findMistake(event as { readonly [name: string]: unknown }, members);
  if (mistake !== undefined)
    throw new TypeError(`A streaming tool yielded an event of type "${String(type)}" ${mistake}`);
}

/** Throws a `TypeError` for wrong arguments of a method of the context that makes an event of them. */
export function assertArguments(
  usage: string,
  { type, ...members }: { readonly type: "progress" | "log"; readonly [name: string]: unknown },
): void {
  const mistake = findMistake(members, eventMembers[type] ?? {});
  if (mistake !== undefined)
    throw new TypeError(`Write context.${usage}: it was called with arguments ${mistake}`);
}

function findMistake(event: { readonly [name: string]: unknown }, members: EventMembers): string | undefined {
  for (const name of Object.keys(event)) {
    if (name === "type" || Object.hasOwn(members, name)) continue;
    const names = Object.keys(members);
    const likely = nearest(name, names);
    const hint =
      likely === undefined ? `its members are ${["type", ...names].join(", ")}` : `did you mean "${likely}"?`;
    return `with the member ${JSON.stringify(name)}, which it does not have; ${hint}`;
  }
  for (const [name, { is, expected, isOptional = false }] of Object.entries(members)) {
    const value = event[name];
    if (value === undefined ? isOptional : is(value)) continue;
    const found = value === undefined ? "is missing" : `is ${describeValue(value)}`;
    return `whose "${name}" ${found}; it must be ${expected}`;
  }
  return undefined;
}

function describeNoEvent(event: unknown, type: unknown): string {
  if (isContent(event)) return describeAs("a content block", 'write { type: "content", content: block }');
  const likely = typeof type === "string" ? nearest(type, eventTypes) : undefined;
  const found =
    type === undefined
      ? `${describeValue(event)} without a type`
      : `an event of type ${JSON.stringify(type)}`;
  const hint = likely === undefined ? `the types are ${eventTypes.join(", ")}` : `did you mean "${likely}"?`;
  return describeAs(found, hint);
}

function describeAs(found: string, hint: string): string {
  return `A streaming tool yielded ${found}, which is no event; ${hint}`;
}
