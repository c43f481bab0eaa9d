"""The policies of papers on GPU scheduling as plugins: FGD, BestFit, DotProd, Packing, Clustering and Random.

Each is one Score plugin, as the FGD paper compares them (Weng et al., USENIX ATC 2023, section 6): scores are whole
numbers, and of equal ones the node with the smallest name wins. Filters are kube-scheduler's and DeviceFit.
"""
