"""A BERT-style encoder and its three heads, in NumPy, written to be read.

The modules follow the lessons: `attention`, `embeddings`, `encoder`, `training`, then one module
for each head, and `pretrained`. Arrays are NumPy; floats stay in the dtype they came in; masks are
Boolean and True means "may be attended" or "is real". No function writes into its arguments.
"""
