"""Which arm should be pulled next, when should a run stop, and which arm should be chosen then?"""
