"""The loop that scores postings, compiled, without the interpreter lock."""

# The compiler infers the types here; the docstring lists those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

from evenrank._jit import compiled


# parameters: a compiled loop takes plain arrays.
@compiled(nogil=True)
def scatter(terms, ends, documents, tf, idf, norm, free, base, data, indices):
    """Puts the postings of a batch where they belong among those of all batches.

    ``terms`` [U], with postings up to ``ends`` [U] in ``documents`` and ``tf`` [P]. ``idf`` [T], ``norm`` [N] float64.
    ``free`` [T]: the next place of each term, which moves on, less ``base`` a place in ``data`` and ``indices``.
    """
    start = 0
    for i in range(len(terms)):
        term = terms[i]
        place = free[term] - base
        for j in range(start, ends[i]):
            document = documents[j]
            data[place] = idf[term] * tf[j] / (tf[j] + norm[document])
            indices[place] = document
            place += 1
        free[term] = place + base
        start = ends[i]
