"""TopologyScoring: spreads the pods of one workload over zones, regions and racks."""
