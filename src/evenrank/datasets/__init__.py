"""Data sets: public ones, collections built from SQuAD files, and the built-in collection with planted bias.

- :mod:`.public`: downloads of public word lists, query sets and runs
- :mod:`.squad_collection`: SQuAD files as a collection with splits
- :mod:`.synthetic`: the built-in collection; ``synthetic_config`` (what is planted), ``synthetic_plan`` (what each
  passage contains), ``synthetic_templates`` and ``synthetic_names`` (sentences and names), ``synthetic_text``
  (templates filled in), ``synthetic_collection`` (the tables and files)
- :mod:`.collection_folder`: the files that every command reads
"""
