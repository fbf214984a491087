"""What would a policy have done with rewards that are known already? Logs, and their replays."""
