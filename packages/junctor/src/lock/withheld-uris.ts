import type { MemberLists } from "@junctor/core/compose";
import { UriTemplateError } from "@junctor/core/errors";
import { parseUriTemplate } from "@junctor/core/mcp";
import { foldCase, spellingsOf } from "@junctor/core/provider";

/** Where a server has more templates that are held back, every URI that is not approved itself is held back. */
const maxTemplates = 100;

/** Tells URIs that are held back, or fit a template that is, in any spelling and any case. */
export function createWithholds(
  { resources, templates }: MemberLists,
  held: readonly string[],
): NonNullable<MemberLists["withholds"]> {
  const approved = new Set([
    ...resources.map(({ uri }) => uri),
    ...templates.map(({ uriTemplate }) => uriTemplate),
  ]);
  let spelled: ReadonlySet<string> | undefined;
  const heldTemplates = held.flatMap(toTemplate);
  const foldedTemplates = held.map(foldCase).flatMap(toTemplate);
  return (uri) => {
    if (approved.has(uri)) return false;
    if (heldTemplates.length > maxTemplates) return true;
    const spellings = spellingsOf(uri);
    const known = (spelled ??= new Set(held.flatMap(spellingsOf).map(foldCase)));
    return spellings.some((spelling) => {
      const folded = foldCase(spelling);
      return (
        known.has(folded) ||
        heldTemplates.some(({ match }) => match(spelling) !== undefined) ||
        foldedTemplates.some(({ match }) => match(folded) !== undefined)
      );
    });
  };
}

/** A URI without variables is in the set of spellings already. */
function toTemplate(text: string): readonly ReturnType<typeof parseUriTemplate>[] {
  if (!text.includes("{")) return [];
  try {
    return [parseUriTemplate(text)];
  } catch (error) {
    if (error instanceof UriTemplateError) return [];
    throw error;
  }
}
