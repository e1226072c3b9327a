export { anyone, Catalog } from "./catalog.ts";
export { type Collision, describeCollision, type ReservedFor, type UriNames } from "./claims.ts";
export { compose, createPolledLists } from "./compose.ts";
export { createComposition } from "./composition.ts";
export type { Member, MemberLists, MemberNames } from "./member.ts";
export {
  assertNamespaces,
  defaultNaming,
  type Naming,
  prefixOf,
  qualify,
  type Separator,
  toGroupName,
  unqualified,
} from "./namespace.ts";
export { allowAll, type Policy, type View } from "./view.ts";
