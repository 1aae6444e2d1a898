"""Keeps the record: one chain of rows that are only ever added, over all that the bridge did.

`append` is the way in for what no other row keeps, in the commit that makes it true; `follow` reads
what other tables keep anyway.
"""

from app.store.record.chain import append, erase
from app.store.record.erasing import erase_person, erase_words
from app.store.record.following import follow, is_behind

__all__ = ["append", "erase", "erase_person", "erase_words", "follow", "is_behind"]
