"""Position bias: where answers are in passages, and how that affects rankers.

Each subject has a call, a result and a measure computed from arrays or tables:

- answer positions: :mod:`.answers`, :mod:`.answers_result`, :mod:`.answer_positions`
- ATS and MATS: :mod:`.similarity`, :mod:`.similarity_result`, :mod:`.term_similarity`
- position sensitivity: :mod:`.sensitivity` (with :mod:`.sensitivity_data`), :mod:`.sensitivity_result` (with
  :mod:`.sensitivity_summary` and :mod:`.sensitivity_page`) and :mod:`.curves` (with :mod:`.resampling`); answers are
  moved by :mod:`.moved_answers` (with :mod:`.sentence_moves` and :mod:`.place_values`)
- effectiveness by the position of the answer, as it stands: :mod:`.buckets`
"""
