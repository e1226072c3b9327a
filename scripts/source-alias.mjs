// Maps the names of our packages to their source, for tests and for scripts that load TypeScript: they need no build, and share one copy
// of each module. The condition `@junctor/source` would do the same, but Vite would pass it on to every program they start.

import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("../packages", import.meta.url));

export const sourceAlias = [
  { find: /^@junctor\/core\/(.+)$/, replacement: `${packages}/core/src/$1/index.ts` },
  { find: /^@junctor\/(server|client)$/, replacement: `${packages}/$1/src/index.ts` },
  { find: /^@junctor\/(server|client)\/(fetch|internal)$/, replacement: `${packages}/$1/src/$2.ts` },
  { find: /^@junctor\/client\/(ai-sdk|anthropic|openai)$/, replacement: `${packages}/client/src/$1.ts` },
];
