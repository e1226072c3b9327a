/**
 * What is known about a request that failed: it never left (`not_sent`), it left and it is unknown whether it was carried
 * out (`outcome_unknown`), or the other side refused or answered it (`answered`).
 */
export type Delivery = "not_sent" | "outcome_unknown" | "answered";
