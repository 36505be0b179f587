"""Searches one pair of fragments so that the hits do not depend on the fragmentation.

An E-value is a p-value times the number of comparisons, so a search over a part of the
database knows the p-values but not the E-values. Three numbers depend on the whole database:

- Z, the number of targets: given to the pipeline, so that hits are reported exactly as in the
  search over everything;
- domZ, the number of targets *reported* for the query: known only when the query has met every
  fragment. A pair is searched with domZ = 1, which reports every domain (a p-value is at
  most 1, the threshold is 10) apart from those that HMMER drops as doubles of another one;
- what follows from domZ (conditional E-values, which domains are reported and included): set
  by `conclude` from the hits of all pairs, with HMMER's own rule.

The random numbers of HMMER are seeded anew for every comparison, so they depend on nothing.
Compared with: `plain_search`, which is `pyhmmer.hmmsearch` with nothing but its defaults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyhmmer
from pyhmmer.easel import Alphabet, DigitalSequenceBlock
from pyhmmer.plan7 import HMM, Pipeline, TopHits

from . import data, records

DOMAIN_E, INCLUSION_E = 10.0, 0.01  # HMMER's defaults for domE and incdomE
DOMZ_OF_A_PAIR = 1.0


def _domain(domain: Any) -> records.Domain:
    a = domain.alignment
    return records.Domain(
        domain.env_from,
        domain.env_to,
        domain.score,
        domain.bias,
        domain.correction,
        domain.envelope_score,
        domain.pvalue,
        domain.c_evalue,
        domain.i_evalue,
        domain.reported,
        domain.included,
        a.hmm_name,
        a.hmm_accession or "",
        a.hmm_from,
        a.hmm_to,
        a.hmm_length,
        a.hmm_sequence,
        a.identity_sequence,
        a.target_name,
        a.target_from,
        a.target_to,
        a.target_length,
        a.target_sequence,
        a.posterior_probabilities,
    )


def _best(hit: Any) -> int:
    best = hit.best_domain
    key = (best.env_from, best.env_to, best.score)
    return next(i for i, d in enumerate(hit.domains) if (d.env_from, d.env_to, d.score) == key)


def _hits(query: int, hmm: HMM[Any], found: TopHits[Any]) -> list[records.Hit]:
    return [
        records.Hit(
            query,
            hmm.name,
            hit.name,
            hit.accession or "",
            hit.description or "",
            hit.length,
            hit.score,
            hit.pre_score,
            hit.sum_score,
            hit.bias,
            hit.pvalue,
            hit.evalue,
            hit.included,
            _best(hit),
            tuple(_domain(domain) for domain in hit.domains),
        )
        for hit in found.reported
    ]


def in_order(hits: Iterable[records.Hit]) -> list[records.Hit]:
    """Return hits by query, the best first; the order does not depend on how they were found."""
    return sorted(hits, key=lambda hit: (hit.query, hit.pvalue, -hit.score, hit.target))


def search_pair(
    hmms: data.Fragment, sequences: data.Fragment, database_size: float
) -> list[records.Hit]:
    """Search every profile of one fragment in every sequence of another.

    `database_size` is the number of sequences of the whole database.
    """
    targets = data.sequences_of(sequences.data.data)
    pipeline = Pipeline(Alphabet.amino(), Z=database_size, domZ=DOMZ_OF_A_PAIR)
    found: list[records.Hit] = []
    for index, hmm in enumerate(data.hmms_of(hmms.data.data)):
        found += _hits(hmms.first + index, hmm, pipeline.search_hmm(hmm, targets))
        pipeline.clear()
    return found


def conclude(hits: Iterable[records.Hit]) -> list[records.Hit]:
    """Set what depends on domZ, from the hits of all pairs; return them in order."""
    everything = in_order(hits)
    reported = Counter(hit.query for hit in everything)

    def settled(hit: records.Hit, domain: records.Domain) -> records.Domain:
        c_evalue = domain.pvalue * reported[hit.query]
        return domain._replace(
            c_evalue=c_evalue,
            reported=domain.reported and c_evalue <= DOMAIN_E,
            included=domain.included and c_evalue <= INCLUSION_E,
        )

    return [hit._replace(domains=tuple(settled(hit, d) for d in hit.domains)) for hit in everything]


def plain_search(hmms: list[HMM[Any]], sequences: DigitalSequenceBlock[Any]) -> list[records.Hit]:
    """Search everything at once with pyhmmer's own function and defaults, on one processor."""
    tops = pyhmmer.hmmsearch(hmms, sequences, cpus=1)
    found = (_hits(i, hmm, top) for i, (hmm, top) in enumerate(zip(hmms, tops, strict=True)))
    return in_order(hit for hits in found for hit in hits)
