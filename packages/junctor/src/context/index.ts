export { estimateTokens } from "./estimate.ts";
export {
  type BudgetOptions,
  type CapOf,
  profileOfResults,
  readResultName,
  type ResultsElsewhere,
  resultsName,
  toCapOf,
  withBudget,
} from "./with-budget.ts";
export { KeptResults, type KeptResultsOptions } from "./kept-results.ts";
export { createSearchTools, type SearchOptions, searchToolNames, withSearch } from "./with-search.ts";
export type { ServerOf } from "./tool-index.ts";
export { type ProfileOptions, withProfile } from "./with-profile.ts";
