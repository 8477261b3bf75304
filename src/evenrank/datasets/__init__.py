"""Data sets: public ones, collections built from SQuAD files, and the built-in collection with planted bias.

- :mod:`.public`: downloads of public word lists, query sets and runs
- :mod:`.squad_collection`: SQuAD files as a collection with splits
- :mod:`.synthetic`: the built-in collection, from what is planted to its tables and files; its sentences and names
  in :mod:`.synthetic_templates`
- :mod:`.collection_folder`: the files that every command reads
"""
