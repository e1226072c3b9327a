export { estimateTokens } from "./estimate.ts";
export { type CapOf, toCapOf } from "./results/caps.ts";
export { KeptResults, type KeptResultsOptions } from "./results/kept-results.ts";
export { profileOfResults, type ResultsElsewhere, resultsName } from "./results/results-elsewhere.ts";
export { type BudgetOptions, readResultName, withBudget } from "./results/with-budget.ts";
export { createSurface, surfaceNames } from "./search/search-surface.ts";
export type { ServerOf } from "./search/tool-index.ts";
export { type SearchOptions, withSearch } from "./search/with-search.ts";
export { type ProfileOptions, withProfile } from "./with-profile.ts";
