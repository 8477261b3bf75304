"""The figures of every command and study, at the commit in ``freeze/base`` and now: ``make freeze`` compares them."""
