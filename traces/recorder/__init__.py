"""What record.py and loss.py are made of: a model's attention, watched from the inside.

interface.py stands in for the attention of a model; everything else is built on it. The library
modules know nothing of command lines; errors a user can act on are RecordError.
"""
